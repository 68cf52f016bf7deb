package html

import (
	"bytes"
	"encoding/base64"
	"strconv"

	"github.com/klauspost/compress/gzip"
)

// The marks of a chunk; see the documentation of the package.
const (
	markOwn        = 0x01
	markSystem     = 0x02
	markUnresolved = 0x03
	markBacktrace  = 0x04
	markInput      = 0x05
)

// maxPacking bounds the chunks compressed at the same time, 3 MiB each. It is the same on all
// machines, since it affects the order of chunks and backtraces on a page.
const maxPacking = 4

// chunk holds the text at the end of a large page: the chunk that grows, and full chunks until
// their compressed form is on the page.
type chunk struct {
	text  []byte
	next  int64  // number of the first line of the next chunk to compress
	input string // name of the input that begins with the next line

	full    [][]byte  // texts of full chunks to compress, each in its own array
	packing []*packer // compressors, in the order of their chunks
	idle    []*packer
	spare   [][]byte // arrays to reuse for texts
}

// begin returns the text so far. The caller extends this text and passes it to add. If the next
// line is the first of an input, begin first adds the name of the input.
func (c *chunk) begin() []byte {
	if c.text == nil {
		c.text = c.buffer()
	}
	if c.input != "" {
		c.text = append(appendVisible(append(c.text, markInput), []byte(c.input)), markInput)
		c.input = ""
	}
	return c.text
}

// add stores text, which is the result of begin, extended by a line or a part of a line. It adds a
// line end if ended is set, and cuts off full chunks.
func (c *chunk) add(text []byte, ended bool) {
	c.text = text
	if ended {
		c.text = append(c.text, '\n')
	}
	for len(c.text) >= chunkSize {
		end := bytes.IndexByte(c.text[chunkSize-1:], '\n') + chunkSize
		if end == chunkSize-1 { // a line without an end
			end = len(c.text)
		}
		c.cut(end)
	}
}

// addRow adds a line of a backtrace, with its marks. If the backtrace begins with this line, the
// parameter backtrace is the number of the backtrace, or 0 if the page does not show it. Otherwise
// the parameter is negative.
func (c *chunk) addRow(r *Row, backtrace int) {
	text := c.begin()
	if backtrace >= 0 {
		text = append(text, markBacktrace)
		if backtrace > 0 {
			text = strconv.AppendInt(text, int64(backtrace), 10)
		}
		text = append(text, markBacktrace)
	}
	switch r.Kind {
	case Own:
		text = append(text, markOwn)
	case System:
		text = append(text, markSystem)
	case Unresolved:
		text = append(text, markUnresolved)
	}
	c.add(appendLine(text, r.Text, inChunk), r.Ended)
}

// cut moves the first end bytes of the text to full.
func (c *chunk) cut(end int) {
	text, rest := c.text[:end], c.text[end:]
	c.full = append(c.full, text)
	c.text = append(c.buffer(), rest...)
}

// buffer returns an empty array for the text of a chunk, reused if possible.
func (c *chunk) buffer() []byte {
	if n := len(c.spare); n > 0 {
		space := c.spare[n-1]
		c.spare = c.spare[:n-1]
		return space[:0]
	}
	return make([]byte, 0, chunkSize+4*blockSize)
}

// packFull starts to compress the full chunks. It appends the elements of earlier chunks for which
// it had to wait.
func (c *chunk) packFull(dst []byte) []byte {
	for i, text := range c.full {
		dst = c.pack(dst, text)
		c.full[i] = nil
	}
	c.full = c.full[:0]
	return dst
}

// packAll compresses the rest of the text, and appends the elements of all chunks.
func (c *chunk) packAll(dst []byte) []byte {
	if dst = c.packFull(dst); len(c.text) > 0 {
		dst = c.pack(dst, c.text)
	}
	for len(c.packing) > 0 {
		dst = c.finish(dst)
	}
	return dst
}

// pack starts to compress a chunk, and keeps its text. If maxPacking chunks are being compressed,
// pack first waits for the oldest, and appends its element.
func (c *chunk) pack(dst, text []byte) []byte {
	if len(c.packing) == maxPacking {
		dst = c.finish(dst)
	}
	if len(c.idle) == 0 {
		c.idle = append(c.idle, newPacker())
	}
	p := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	c.packing = append(c.packing, p)

	p.text = text
	lines := int64(bytes.Count(text, []byte{'\n'}))
	first := c.next
	c.next += lines
	if text[len(text)-1] != '\n' {
		lines++
	}
	go func() {
		p.pack(first, lines)
		p.done <- struct{}{}
	}()
	return dst
}

// finish waits for the oldest chunk that is being compressed, and appends its element.
func (c *chunk) finish(dst []byte) []byte {
	p := c.packing[0]
	n := copy(c.packing, c.packing[1:])
	c.packing = c.packing[:n]
	<-p.done
	c.idle = append(c.idle, p)
	if cap(p.text) <= 2*chunkSize && len(c.spare) < maxPacking {
		c.spare = append(c.spare, p.text)
	}
	p.text = nil
	return append(dst, p.element...)
}

// A packer makes the elements of chunks, one at a time, and reuses its memory.
type packer struct {
	text    []byte // text of the chunk
	w       *gzip.Writer
	packed  bytes.Buffer
	element []byte
	done    chan struct{} // gets one value for each call of pack
}

// newPacker returns a packer with the fastest compression level. Better levels save a tenth of the
// size, and take up to twice the time.
func newPacker() *packer {
	p := &packer{done: make(chan struct{}, 1)}
	p.w, _ = gzip.NewWriterLevel(&p.packed, gzip.BestSpeed) // the level is valid
	return p
}

func (p *packer) pack(first, lines int64) {
	p.packed.Reset()
	p.w.Reset(&p.packed)
	p.w.Write(p.text) // a Buffer does not fail
	p.w.Close()
	b := append(p.element[:0], `<script type="text/x-gz" data-first="`...)
	b = append(strconv.AppendInt(b, first, 10), `" data-lines="`...)
	b = append(strconv.AppendInt(b, lines, 10), `">`...)
	b = base64.StdEncoding.AppendEncode(b, p.packed.Bytes())
	p.element = append(b, "</script>\n"...)
}
