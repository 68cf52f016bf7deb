package follow

import "bytes"

// Line ends. In UTF-16, a byte of a line end is not one: 0x0A may be half of another character.
var (
	lineEnd        = []byte{'\n'}
	lineEndUTF16LE = []byte{'\n', 0}
	lineEndUTF16BE = []byte{0, '\n'}
)

// newline returns the line end of the file: that of UTF-16 if it begins with the byte order mark.
func (g *generation) newline() []byte {
	switch {
	case bytes.HasPrefix(g.head, []byte("\xff\xfe")) && !bytes.HasPrefix(g.head[2:], []byte{0, 0}): // else UTF-32
		return lineEndUTF16LE
	case bytes.HasPrefix(g.head, []byte("\xfe\xff")):
		return lineEndUTF16BE
	}
	return lineEnd
}

// wide reports whether the file begins with a byte order mark of UTF-16: its reader needs the file
// from its beginning, and an even number of bytes.
func (g *generation) wide() bool { return len(g.newline()) > 1 }

// firstEnd returns the index after the first line end in b, or 0.
func (g *generation) firstEnd(b []byte) int { return after(bytes.Index(b, g.newline()), g) }

// lastEnd returns the index after the last line end in b, or 0.
func (g *generation) lastEnd(b []byte) int { return after(bytes.LastIndex(b, g.newline()), g) }

func after(i int, g *generation) int {
	if i < 0 {
		return 0
	}
	return i + len(g.newline())
}
