package publish

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
)

// A meter passes bytes on, and measures their size after compression by gzip, if that may be more than
// the limit. S2 compresses several times as fast, and less: while its blocks are within the limit,
// they are kept, and gzip, which would be within it too, has nothing to do. That is so for most files.
type meter struct {
	w       io.Writer
	blocks  [][]byte // by S2
	kept    int      // bytes of blocks
	scratch []byte   // for a block
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
	if m.gzip != nil {
		m.gzip.Write(p)
		return m.w.Write(p)
	}
	m.scratch = s2.Encode(m.scratch[:cap(m.scratch)], p)
	m.blocks = append(m.blocks, bytes.Clone(m.scratch))
	if m.kept += len(m.scratch); m.kept > maxCompressed {
		m.measure()
	}
	return m.w.Write(p)
}

// measure begins to measure, with what is kept.
func (m *meter) measure() {
	m.gzip, _ = gzip.NewWriterLevel(&m.size, gzip.BestSpeed) // its error is about the level
	for _, block := range m.blocks {
		m.scratch, _ = s2.Decode(m.scratch[:cap(m.scratch)], block) // its error is about blocks that are not ours
		m.gzip.Write(m.scratch)
	}
	m.blocks, m.scratch = nil, nil
}

// full reports whether GitHub would refuse more. Better compression than ours, which is usual, only
// makes the file smaller.
func (m *meter) full() bool { return m.size > maxCompressed }
