package asis

import (
	"bytes"
	"io"
	"math"
	"os"
	"strconv"
)

// appendSource appends count lines of a source file around line, as LLVM prints them. It appends
// nothing if the file cannot be read.
func appendSource(b []byte, file string, line int64, count int) []byte {
	if count <= 0 || file == unknown {
		return b
	}
	text, err := readSource(file)
	if err != nil {
		return b
	}
	first := max(1, line-int64(count/2))
	last := first + int64(count) - 1
	// width of the line numbers; as in LLVM, it is one too small if last is 10, 100 and so on
	width := int(math.Ceil(math.Log10(float64(last))))
	for n, printed := int64(1), 0; n <= last && len(text) > 0 && printed < maxContext; n++ {
		var s []byte
		s, text, _ = bytes.Cut(text, []byte{'\n'})
		if n < first {
			continue
		}
		printed++
		digits := strconv.FormatInt(n, 10)
		for range width - len(digits) {
			b = append(b, ' ')
		}
		b = append(b, digits...)
		if n == line {
			b = append(b, " >: "...)
		} else {
			b = append(b, "  : "...)
		}
		b = append(append(b, bytes.TrimSuffix(s, []byte{'\r'})...), '\n')
	}
	return b
}

// readSource reads only regular files: debug information may name any file.
func readSource(file string) ([]byte, error) {
	if info, err := os.Stat(file); err != nil || !info.Mode().IsRegular() {
		return nil, os.ErrNotExist
	}
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxSource))
}
