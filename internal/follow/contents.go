package follow

import (
	"context"
	"errors"
	"io"
	"time"
)

// Limits of compressed files.
const (
	unpackPart = 32 << 10 // bytes unpacked at once
	// unpacked bytes that stay when the window is cut, at twice this size: one read, the unfinished
	// line before it, and the bytes that a checkpoint hashes
	unpackWindow = readSize + rereadSize
	// Contents longer than unpackFloor plus unpackRatio times the file are a bomb: gzip's largest
	// ratio is 1,032.
	unpackRatio = 1100
	unpackFloor = 256 << 20 // bytes
	maxNothing  = 100       // a decoder fails after this many empty reads in a row
)

var errBomb = errors.New("the file unpacks to over 1100 times its size, which no log does")

// A damage is the reason why the rest of a compressed file cannot be unpacked.
type damage struct {
	error
	cut bool // the file ends too soon, and may still be written
}

func (d damage) Unwrap() error { return d.error }

// An unpacker is the type of [Options.Unpack].
type unpacker = func(packed io.Reader) (contents io.Reader, done func(), err error)

// A contents is the unpacked content of a compressed file. Unpacking starts at the beginning, and
// only a window is kept. A contents is not safe for concurrent use.
type contents struct {
	of         *handle // the compressed file
	unpack     unpacker
	packedSize int64 // size of the compressed file when its decoder began

	in     *packedReader
	r      io.Reader // the decoder; nil before begin, and after finish
	done   func()    // frees the decoder's memory
	at     int64     // bytes unpacked so far
	window []byte    // the last unpacked bytes
	size   int64     // size of the contents; -1: not known yet
	err    error     // a damage at offset at
}

type packedReader struct {
	of  *handle
	ctx context.Context
	off int64
	end bool
	err error // error of the system, or of ctx
}

func (r *packedReader) Read(p []byte) (int, error) {
	if r.err = r.ctx.Err(); r.err != nil {
		return 0, r.err
	}
	n, err := r.of.ReadAt(p, r.off)
	r.off += int64(n)
	switch {
	case err == io.EOF:
		r.end = true
	case err != nil:
		r.err = err
	}
	return n, err
}

// ReadAt implements [io.ReaderAt]. If off is before the window, ReadAt unpacks the file again. The
// error is a damage, io.EOF, an error of reading the file, or the error of the disk's context.
func (c *contents) ReadAt(p []byte, off int64) (n int, err error) {
	for n < len(p) {
		at := off + int64(n)
		begin := c.at - int64(len(c.window))
		switch {
		case at < begin:
			c.release()
		case at < c.at:
			n += copy(p[n:], c.window[at-begin:])
		case c.size >= 0 && c.at >= c.size:
			return n, io.EOF
		case c.err != nil:
			return n, c.err
		default:
			if err := c.more(); err != nil && !isDamage(err) { // bytes may come with the damage
				return n, err
			}
		}
	}
	return n, nil
}

// release frees the decoder and the window. The next use unpacks the file from its beginning.
func (c *contents) release() {
	if c.done != nil {
		c.done()
	}
	c.r, c.in, c.done, c.window = nil, nil, nil, nil
	c.at, c.err = 0, nil
}

func (c *contents) more() error {
	if c.r == nil {
		if err := c.begin(); err != nil {
			return err
		}
	}
	if keep := unpackWindow; len(c.window) > 2*keep {
		c.window = c.window[:copy(c.window, c.window[len(c.window)-keep:])]
	}
	have := len(c.window)
	c.window = append(c.window, make([]byte, unpackPart)...)
	n, err := 0, error(nil)
	for range maxNothing {
		if n, err = c.r.Read(c.window[have : have+unpackPart]); n > 0 || err != nil {
			break
		}
	}
	c.window = c.window[:have+n]
	c.at += int64(n)
	switch {
	case err == io.EOF:
		c.size = c.at
		c.finish()
		return nil
	case err != nil:
		return c.failed(err)
	case n == 0:
		return c.failed(io.ErrNoProgress)
	case c.at > unpackFloor+unpackRatio*c.packedSize:
		return c.failed(errBomb)
	}
	return nil
}

func (c *contents) begin() error {
	info, err := c.of.Stat()
	if err != nil {
		return err
	}
	c.packedSize = info.Size()
	c.in = &packedReader{of: c.of, ctx: c.of.disk.ctx}
	c.r, c.done, err = c.unpack(c.in)
	if err != nil {
		c.r, c.done = nil, nil
		return c.failed(err)
	}
	return nil
}

// finish ends the decoder, but keeps the window.
func (c *contents) finish() {
	if c.done != nil {
		c.done()
	}
	c.r, c.done = nil, nil
}

// failed turns an error of the decoder into a damage. If a read of the file has failed, it returns
// the error of the read, and the next use restarts the decoder.
func (c *contents) failed(err error) error {
	in := c.in
	if in.err != nil {
		c.release()
		return in.err
	}
	c.finish()
	c.err = damage{err, in.end && err != errBomb}
	return c.err
}

// openPacked opens the compressed file at path, at the beginning of its contents. It returns the
// file even if the error is a damage.
func (d *disk) openPacked(path string) (*generation, error) {
	h, info, err := d.openHandle(path)
	if err != nil {
		return nil, err
	}
	g := &generation{handle: h, mtime: info.ModTime(), moved: time.Now(), copied: true}
	g.contents = &contents{of: h, unpack: d.unpack, size: -1}
	format, err := h.format()
	switch {
	case isDamage(err):
		g.contents.err = err
	case err == nil && format == nil:
		err = errForeignPacking
	case err == nil:
		err = g.readHead()
	}
	if err != nil && !isDamage(err) {
		g.Close()
		return nil, err
	}
	g.size, _ = h.contentSize()
	return g, err
}

var errForeignPacking = errors.New("in a format that cannot be unpacked")

func isDamage(err error) bool { _, ok := errors.AsType[damage](err); return ok }

// unpackedLines implements lines for a compressed file.
func (g *generation) unpackedLines(ctx context.Context, buf []byte, emit func(p []byte, quiet bool) error) (more bool, err error) {
	n, err := g.ReadAt(buf, g.off)
	if n == 0 && err != nil {
		if g.size = max(g.size, g.off); err == io.EOF {
			g.size, err = g.off, nil
		}
		return false, err
	}
	g.moved = time.Now()
	b := buf[:n]
	end := g.lastEnd(b)
	if end == 0 && err == nil {
		return g.unpackedLong(ctx, b, emit)
	}
	off := g.off
	g.off, g.look = off+int64(end), off+int64(n)
	g.remember(b)
	g.size = max(g.size, g.look)
	if e := g.emitLines(off, b[:end], emit); e != nil {
		g.off = off
		return false, e
	}
	if err == io.EOF {
		g.size = g.look
		return false, nil
	}
	if err != nil && end == 0 {
		return false, err
	}
	return true, nil // the next read returns the error again
}

// unpackedLong emits a line longer than buf in parts. The first part is in buf.
func (g *generation) unpackedLong(ctx context.Context, buf []byte, emit func(p []byte, quiet bool) error) (more bool, err error) {
	quiet := g.off < g.silent
	at, n, end := g.off, len(buf), 0
	for end == 0 && n > 0 {
		if err := emit(buf[:n], quiet); err != nil {
			return false, err
		}
		at += int64(n)
		if n, err = g.ReadAt(buf, at); ctx.Err() != nil {
			err = ctx.Err()
			break
		}
		end = g.firstEnd(buf[:n])
		if err != nil && end == 0 && n > 0 {
			err = emit(buf[:n], quiet)
			at += int64(n)
			break
		}
	}
	if end > 0 {
		err = emit(buf[:end], quiet)
		at += int64(end)
	} else if e := emit(g.newline(), quiet); e != nil || ctx.Err() != nil {
		return false, errors.Join(e, ctx.Err())
	}
	if isSinkError(err) {
		return false, err
	}
	g.size = max(g.size, at)
	return true, g.seek(at)
}
