package follow

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/unpack"
)

// Line ends. In UTF-16, the byte 0x0A alone may be half of another character.
var (
	lineEnd        = []byte{'\n'}
	lineEndUTF16LE = []byte{'\n', 0}
	lineEndUTF16BE = []byte{0, '\n'}
)

// newline returns the line end of the file, in UTF-16 if the file begins with a UTF-16 byte order
// mark. It returns nil for a file with the name and the magic bytes of a compressed file, whose
// bytes are emitted unchanged.
func (g *generation) newline() []byte {
	switch {
	case g.namedArchive && g.isCompressed():
		return nil
	case bytes.HasPrefix(g.head, []byte("\xff\xfe")) && !bytes.HasPrefix(g.head[2:], []byte{0, 0}): // else UTF-32
		return lineEndUTF16LE
	case bytes.HasPrefix(g.head, []byte("\xfe\xff")):
		return lineEndUTF16BE
	}
	return lineEnd
}

// isCompressed reports whether the file begins with the magic bytes of a known compression.
func (g *generation) isCompressed() bool {
	f, _ := unpack.FormatOf(g.head)
	return f != nil
}

// needsBeginning reports whether the file cannot be read from the middle: an archive, or UTF-16
// with a byte order mark.
func (g *generation) needsBeginning() bool { return len(g.newline()) != 1 }

// firstEnd returns the index after the first line end in b, or 0.
func (g *generation) firstEnd(b []byte) int { return g.lineEndIn(b, bytes.Index) }

// lastEnd returns the index after the last line end in b, or 0.
func (g *generation) lastEnd(b []byte) int { return g.lineEndIn(b, bytes.LastIndex) }

// lineEndIn returns the index after the line end that index finds in b, or 0. In an archive, which
// has no lines, it returns len(b).
func (g *generation) lineEndIn(b []byte, index func(b, end []byte) int) int {
	end := g.newline()
	if end == nil {
		return len(b)
	}
	if i := index(b, end); i >= 0 {
		return i + len(end)
	}
	if len(end) == 1 {
		return 0
	}
	text := b[1+bytes.LastIndexFunc(b, isControl):]
	if i := index(text, lineEnd); i >= 0 && len(text) >= unpack.TextRun {
		return len(b) - len(text) + i + 1
	}
	return 0
}

// isControl reports whether r never occurs in plain text. UTF-16 has NUL bytes: after
// unpack.TextRun bytes without a control character, the file no longer holds UTF-16. The decoder of
// package input applies the same rule.
func isControl(r rune) bool {
	return r < ' ' && r != '\n' && r != '\r' && r != '\t' && r != 0x1b
}
