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

// maxPacking bounds the chunks that are compressed at the same time; each takes 3 MiB. It does
// not depend on the machine: nor does the order of chunks and backtraces on a page.
const maxPacking = 4

// chunk is the text of the next chunks of a page.
type chunk struct {
	text   []byte
	shared bool   // the array of text is that of other chunks, too
	next   int64  // number of the first line of text
	input  string // name of the input that begins with the next line

	packing []*packer // of the chunks that are being compressed, in their order
	idle    []*packer
}

// begin returns the text, for add, with the name of an input that begins with the next line.
func (c *chunk) begin() []byte {
	c.text = roomy(c.text)
	if c.input != "" {
		c.text = append(appendVisible(append(c.text, markInput), []byte(c.input)), markInput)
		c.input = ""
	}
	return c.text
}

// add sets the text with a line, or a part of one, added.
func (c *chunk) add(text []byte, ended bool) {
	c.text = text
	if ended {
		c.text = append(c.text, '\n')
	}
}

// packFull compresses the chunks that are full, and appends the elements of those that are done.
func (c *chunk) packFull(dst []byte) []byte {
	for len(c.text) >= chunkSize {
		end := bytes.IndexByte(c.text[chunkSize-1:], '\n') + chunkSize
		if end == chunkSize-1 { // a line without an end
			end = len(c.text)
		}
		dst = c.pack(dst, end)
	}
	return dst
}

// packAll compresses the rest of the text, and appends the elements of all chunks.
func (c *chunk) packAll(dst []byte) []byte {
	if len(c.text) > 0 {
		dst = c.pack(dst, len(c.text))
	}
	for len(c.packing) > 0 {
		dst = c.finish(dst)
	}
	return dst
}

// pack compresses the next bytes of the text. If maxPacking chunks are being compressed, it waits for
// the first one, and appends its element.
func (c *chunk) pack(dst []byte, end int) []byte {
	if len(c.packing) == maxPacking {
		dst = c.finish(dst)
	}
	if len(c.idle) == 0 {
		c.idle = append(c.idle, newPacker())
	}
	p := c.idle[len(c.idle)-1]
	c.idle = c.idle[:len(c.idle)-1]
	c.packing = append(c.packing, p)

	text, rest := c.text[:end:end], c.text[end:]
	if len(rest) >= chunkSize { // the text of a page that has just become large: not copied
		c.text, c.shared = rest, true
	} else {
		space := p.text[:0]
		if p.text = c.text; c.shared { // which would keep the other chunks
			p.text, c.shared = nil, false
		}
		c.text = append(space, rest...)
	}
	first, lines := c.next, int64(bytes.Count(text, []byte{'\n'}))
	c.next += lines
	if text[len(text)-1] != '\n' {
		lines++
	}
	go func() {
		p.pack(text, first, lines)
		p.done <- struct{}{}
	}()
	return dst
}

// finish waits for the first of the chunks that are being compressed, and appends its element.
func (c *chunk) finish(dst []byte) []byte {
	p := c.packing[0]
	n := copy(c.packing, c.packing[1:])
	c.packing = c.packing[:n]
	<-p.done
	c.idle = append(c.idle, p)
	return append(dst, p.element...)
}

// A packer makes elements of chunks, one at a time. Their memory is used again.
type packer struct {
	text    []byte // of the chunk, or the memory for the text of another one
	w       *gzip.Writer
	packed  bytes.Buffer
	element []byte
	done    chan struct{} // gets one value for each call of pack
}

// newPacker returns a packer of the fastest level: the better ones save a tenth of the size, and
// take up to twice the time.
func newPacker() *packer {
	p := &packer{text: make([]byte, 0, chunkSize+4*blockSize), done: make(chan struct{}, 1)}
	p.w, _ = gzip.NewWriterLevel(&p.packed, gzip.BestSpeed) // the level is a valid one
	return p
}

// pack makes the element of a chunk.
func (p *packer) pack(text []byte, first, lines int64) {
	p.packed.Reset()
	p.w.Reset(&p.packed)
	p.w.Write(text) // a Buffer does not fail
	p.w.Close()
	b := append(p.element[:0], `<script type="text/x-gz" data-first="`...)
	b = append(strconv.AppendInt(b, first, 10), `" data-lines="`...)
	b = append(strconv.AppendInt(b, lines, 10), `">`...)
	b = base64.StdEncoding.AppendEncode(b, p.packed.Bytes())
	p.element = append(b, "</script>\n"...)
}
