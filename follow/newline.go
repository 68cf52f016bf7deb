package follow

import "bytes"

// Line ends. In UTF-16, a byte of a line end is not one: 0x0A may be half of another character.
var (
	lineEnd        = []byte{'\n'}
	lineEndUTF16LE = []byte{'\n', 0}
	lineEndUTF16BE = []byte{0, '\n'}
)

// newline returns the line end of the file: that of UTF-16 if it begins with the byte order mark,
// and nil if it is compressed: its bytes are no lines, and are emitted as they come.
func (g *generation) newline() []byte {
	switch {
	case beginsPacked(g.head):
		return nil
	case bytes.HasPrefix(g.head, []byte("\xff\xfe")) && !bytes.HasPrefix(g.head[2:], []byte{0, 0}): // else UTF-32
		return lineEndUTF16LE
	case bytes.HasPrefix(g.head, []byte("\xfe\xff")):
		return lineEndUTF16BE
	}
	return lineEnd
}

// beginsPacked reports whether a file that begins with head is compressed with gzip, zstd, xz or bzip2.
func beginsPacked(head []byte) bool {
	for _, magic := range []string{"\x1f\x8b\x08", "\x28\xb5\x2f\xfd", "\xfd7zXZ\x00"} {
		if bytes.HasPrefix(head, []byte(magic)) {
			return true
		}
	}
	return len(head) >= 10 && string(head[:3]) == "BZh" && string(head[4:10]) == "1AY&SY"
}

// needsBeginning reports whether the file's reader needs all of its bytes: it is compressed, or its
// beginning has the byte order mark of UTF-16.
func (g *generation) needsBeginning() bool { return len(g.newline()) != 1 }

// firstEnd returns the index after the first line end in b, or 0.
func (g *generation) firstEnd(b []byte) int {
	end := g.newline()
	if end == nil {
		return len(b)
	}
	if i := bytes.Index(b, end); i >= 0 {
		return i + len(end)
	}
	return 0
}

// lastEnd returns the index after the last line end in b, or 0.
func (g *generation) lastEnd(b []byte) int {
	end := g.newline()
	if end == nil {
		return len(b)
	}
	if i := bytes.LastIndex(b, end); i >= 0 {
		return i + len(end)
	}
	return 0
}
