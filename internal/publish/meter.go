package publish

import (
	"bytes"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/s2"
)

// A meter passes bytes on to w, and measures their size after gzip if that may exceed
// maxCompressed. It first compresses with S2, which is several times as fast but less dense. As
// long as the S2 blocks are within the limit, the gzip file is, too, so most files need no gzip.
type meter struct {
	w       io.Writer
	blocks  [][]byte // compressed by S2
	kept    int      // bytes of blocks
	scratch []byte   // reused for one S2 block
	gzip    *gzip.Writer
	size    countBytes
}

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

func (m *meter) measure() {
	m.gzip, _ = gzip.NewWriterLevel(&m.size, gzip.BestSpeed) // fails only for an invalid level
	for _, block := range m.blocks {
		// fails only for damaged blocks
		m.scratch, _ = s2.Decode(m.scratch[:cap(m.scratch)], block)
		m.gzip.Write(m.scratch)
	}
	m.blocks, m.scratch = nil, nil
}

// full reports whether the compressed output exceeds maxCompressed. Uploads usually compress better
// than gzip.BestSpeed, and are smaller than measured.
func (m *meter) full() bool { return m.size > maxCompressed }
