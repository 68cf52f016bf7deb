package source

import (
	"bytes"
)

// A text is a source file, or the reason why there is none. It is immutable.
type text struct {
	data     []byte
	starts   []uint32 // offset of every linesPerStart-th line
	lines    int      // number of lines
	origin   string   // where the text was found
	verified bool
	missing  error // set if there is no text
	retry    bool  // the file may be found later
}

// newText indexes the lines of data, and keeps data. No line follows a final line end.
func newText(data []byte) *text {
	t := &text{data: data}
	for at := 0; at < len(data); t.lines++ {
		if t.lines%linesPerStart == 0 {
			t.starts = append(t.starts, uint32(at))
		}
		n := bytes.IndexByte(data[at:], '\n')
		if n < 0 {
			at = len(data)
		} else {
			at += n + 1
		}
	}
	return t
}

func (t *text) size() int64 { return entryCost + int64(len(t.data)) + 4*int64(len(t.starts)) }

// around returns line n, counted from 1, and up to the given number of lines before and after it,
// without line ends. first is the number of the first returned line. t must have line n. The lines
// alias the text.
func (t *text) around(n, most int) (first int, lines [][]byte) {
	first = max(1, n-most)
	last := min(t.lines, n+most)
	at := t.starts[(first-1)/linesPerStart]
	rest := t.data[at:]
	for skip := (first - 1) % linesPerStart; skip > 0; skip-- {
		rest = rest[bytes.IndexByte(rest, '\n')+1:]
	}
	for range last - first + 1 {
		line, after, _ := bytes.Cut(rest, []byte{'\n'})
		lines = append(lines, bytes.TrimSuffix(line, []byte{'\r'}))
		rest = after
	}
	if first == 1 {
		lines[0] = bytes.TrimPrefix(lines[0], []byte("\ufeff"))
	}
	return first, lines
}
