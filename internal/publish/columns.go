package publish

import "unicode/utf8"

// Limits of the source files read to convert columns.
const (
	maxTexts     = 4096     // files
	maxTextBytes = 32 << 20 // bytes of line lengths and file names in memory
)

// An asciiLines caches the lengths of the lines of source files, and which lines are ASCII. The
// zero value is ready for use.
type asciiLines struct {
	files map[string]*asciiFile
	bytes int
}

// An asciiFile has the length in bytes of each line, or -1 for a line that is not ASCII.
type asciiFile []int32

// asciiLines.has reports whether the line at p is known to be ASCII, and long enough to have the
// column of p.
func (a *asciiLines) has(r *Result, p place) bool {
	if r.Text == nil {
		return false
	}
	f := a.files[p.file]
	if f == nil {
		if a.files == nil {
			a.files = make(map[string]*asciiFile)
		}
		if len(a.files) >= maxTexts || a.bytes >= maxTextBytes {
			return false
		}
		text := r.Text(p.file)
		f = measure(text)
		a.files[p.file] = f
		a.bytes += 4*len(*f) + len(p.file)
	}
	return uint64(p.line) <= uint64(len(*f)) && int64(p.column) <= int64((*f)[p.line-1])
}

func measure(text []byte) *asciiFile {
	var f asciiFile
	n := int32(0)
	for _, c := range text {
		switch {
		case c == '\n':
			f = append(f, n)
			n = 0
		case c >= utf8.RuneSelf:
			n = -1
		case n >= 0:
			n++
		}
	}
	f = append(f, n)
	return &f
}
