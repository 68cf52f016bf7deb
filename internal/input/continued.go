package input

import (
	"bytes"
	"iter"
)

// Continues reports whether an input of the format may continue in another file, such as the
// successor of a rotated log. Other inputs have a start and an end.
func (f Format) Continues() bool {
	switch f {
	case Markup, CRI, Docker, JSON, Journal:
		return true
	}
	return false
}

// contextTags begin the elements that may change the meaning of later lines.
var contextTags = [][]byte{[]byte("{{{reset"), []byte("{{{module:"), []byte("{{{mmap:")}

// ContextLines returns the lines of a markup log that may change the meaning of later lines. Other
// lines need no filtering if they are not printed.
func ContextLines(lines []byte) iter.Seq[[]byte] {
	return func(yield func([]byte) bool) {
		for len(lines) > 0 {
			i := bytes.Index(lines, []byte("{{{"))
			if i < 0 {
				return
			}
			start, end := bytes.LastIndexByte(lines[:i], '\n')+1, len(lines)
			if j := bytes.IndexByte(lines[i:], '\n'); j >= 0 {
				end = i + j + 1
			}
			if line := lines[start:end]; isContext(line) && !yield(line) {
				return
			}
			lines = lines[end:]
		}
	}
}

func isContext(line []byte) bool {
	for _, tag := range contextTags {
		if bytes.Contains(line, tag) {
			return true
		}
	}
	return false
}
