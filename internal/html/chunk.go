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

// chunk is the text of the next chunks of a page.
type chunk struct {
	text  []byte
	next  int64  // number of the first line of text
	input string // name of the input that begins with the next line

	packing chan []byte // gets the last chunk; nil if there is none
	spare   []byte      // text of the chunk before, to be used again
	packer  *packer
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
	return c.finish(dst)
}

// pack compresses the next bytes of the text, and appends the element of the chunk before.
func (c *chunk) pack(dst []byte, end int) []byte {
	dst = c.finish(dst)
	text, rest := c.text[:end:end], c.text[end:]
	if len(rest) >= chunkSize { // the text of a page that has just become large: not copied
		c.text = rest
	} else {
		c.text = append(c.spare[:0], rest...)
		c.spare = text
	}
	first, lines := c.next, int64(bytes.Count(text, []byte{'\n'}))
	c.next += lines
	if text[len(text)-1] != '\n' {
		lines++
	}
	if c.packer == nil {
		c.packer = newPacker()
	}
	p := c.packer
	c.packing = make(chan []byte, 1)
	go func(done chan<- []byte) { done <- p.element(text, first, lines) }(c.packing)
	return dst
}

// finish appends the element of the chunk that is being compressed.
func (c *chunk) finish(dst []byte) []byte {
	if c.packing != nil {
		dst = append(dst, <-c.packing...)
		c.packing = nil
	}
	return dst
}

// A packer makes elements of chunks, one at a time. Their memory is used again.
type packer struct {
	w      *gzip.Writer
	packed bytes.Buffer
	made   []byte
}

// newPacker returns a packer of the fastest level: the better ones save a tenth of the size, and
// take up to twice the time.
func newPacker() *packer {
	p := new(packer)
	p.w, _ = gzip.NewWriterLevel(&p.packed, gzip.BestSpeed) // the level is a valid one
	return p
}

// element returns the element of a chunk, valid until the next call.
func (p *packer) element(text []byte, first, lines int64) []byte {
	p.packed.Reset()
	p.w.Reset(&p.packed)
	p.w.Write(text) // a Buffer does not fail
	p.w.Close()
	b := append(p.made[:0], `<script type="text/x-gz" data-first="`...)
	b = append(strconv.AppendInt(b, first, 10), `" data-lines="`...)
	b = append(strconv.AppendInt(b, lines, 10), `">`...)
	b = base64.StdEncoding.AppendEncode(b, p.packed.Bytes())
	p.made = append(b, "</script>\n"...)
	return p.made
}
