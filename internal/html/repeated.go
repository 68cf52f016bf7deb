package html

import (
	"bytes"
	"hash/crc32"

	"github.com/klauspost/compress/flate"

	"github.com/symfilter/symfilter/internal/deflate"
)

// Bounds of backtraces that are compressed once.
const (
	// A smaller one would not pay for blocks of its own, each with a table of codes.
	minRepeated  = 4 << 10
	keptRepeated = 4 << 20 // bytes of text that are kept, in all
)

// repeated compresses backtraces that repeat, once and well, because a log may consist of few
// different ones.
type repeated struct {
	kept   int // bytes of text
	packed bytes.Buffer
	w      *flate.Writer
}

// A packed is the text of a backtrace in the chunks of a page, which is compressed if two in
// succession were equal.
type packed struct {
	end      int    // place after the last one in the text of all chunks
	sum      uint32 // checksum of the last one, until one is compressed
	text     []byte
	deflated []byte
}

// ended is called after a backtrace was added. It began at the place from of the text of all
// chunks. If it is in one chunk, the chunk may get it compressed. It does not if the last one is
// near, because a match then takes few bytes.
func (c *chunk) ended(p *packed, from int) {
	last := p.end
	p.end = c.done + len(c.text)
	if from < c.done || p.end-from < minRepeated {
		return
	}
	text := c.text[from-c.done:]
	if p.deflated == nil {
		sum := crc32.ChecksumIEEE(text)
		if last > 0 && sum == p.sum {
			c.repeated.compress(p, text)
		}
		p.sum = sum
	}
	if p.deflated != nil && from-last > deflate.Window && bytes.Equal(text, p.text) {
		c.parts = append(c.parts, deflate.Part{Start: from - c.done, End: len(c.text), Deflated: p.deflated})
	}
}

// compress compresses text for p, unless it is too much.
func (r *repeated) compress(p *packed, text []byte) {
	if r.kept += len(text); r.kept > keptRepeated {
		r.kept -= len(text)
		return
	}
	r.packed.Reset()
	if r.w == nil {
		r.w, _ = flate.NewWriter(&r.packed, flate.DefaultCompression) // the level is valid
	}
	r.w.Reset(&r.packed)
	r.w.Write(text) // a Buffer does not fail
	r.w.Flush()     // up to the end of a byte
	p.text, p.deflated = bytes.Clone(text), bytes.Clone(r.packed.Bytes())
}
