package publish

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
)

// A meter passes bytes on, and measures their size after compression. The first ones are kept
// until it is known that there are more than the limit: most files are smaller, and cost nothing.
type meter struct {
	w       io.Writer
	pending [][]byte
	kept    int // bytes of pending
	gzip    *gzip.Writer
	size    countBytes
}

// countBytes counts bytes that are written to it.
type countBytes int64

func (n *countBytes) Write(p []byte) (int, error) {
	*n += countBytes(len(p))
	return len(p), nil
}

func (m *meter) Write(p []byte) (int, error) {
	switch {
	case m.gzip != nil:
		m.gzip.Write(p)
	case m.kept+len(p) <= maxCompressed:
		m.pending = append(m.pending, bytes.Clone(p))
		m.kept += len(p)
	default:
		m.gzip, _ = gzip.NewWriterLevel(&m.size, gzip.BestSpeed) // its error is about the level
		for _, q := range append(m.pending, p) {
			m.gzip.Write(q)
		}
		m.pending = nil
	}
	return m.w.Write(p)
}

// full reports whether GitHub would refuse more. Better compression than ours, which is usual, only
// makes the file smaller.
func (m *meter) full() bool { return m.size > maxCompressed }
