package daemon

import (
	"bytes"
	"context"
	"io"
)

// block is the number of bytes that are read at once, and that a stream holds unwritten at most.
const block = 256 << 10

// stdin is standard input.
type stdin struct {
	p  *pipeline
	in io.Reader
}

func (s *stdin) run(ctx context.Context) error {
	to := s.p.session("stdin", nil)
	err := readLines(ctx, s.in, to)
	if ctx.Err() != nil {
		_, err = to.suspend()
		return err
	}
	if e := to.Close(); err == nil {
		err = e
	}
	return err
}

func (*stdin) close() error { return nil }

// readLines gives the lines of r to w in blocks, until the end of r, an error, or ctx is done. A
// last line without an end is given at the end of r; a line longer than a block in parts.
func readLines(ctx context.Context, r io.Reader, w io.Writer) error {
	type read struct {
		n   int
		err error
	}
	buf := make([]byte, block)
	kept := 0
	reads := make(chan read, 1)
	for {
		go func(b []byte) {
			n, err := r.Read(b)
			reads <- read{n, err}
		}(buf[kept:])
		var got read
		select {
		case <-ctx.Done():
			return ctx.Err() // the read that may never return keeps the buffer
		case got = <-reads:
		}
		have := buf[:kept+got.n]
		whole := len(have)
		if got.err == nil && len(have) < len(buf) {
			whole = lastLineEnd(have)
		}
		if whole > 0 {
			if _, err := w.Write(have[:whole]); err != nil {
				return err
			}
		}
		kept = copy(buf, have[whole:])
		if got.err == io.EOF {
			return nil
		}
		if got.err != nil {
			return got.err
		}
	}
}

// lastLineEnd returns the number of bytes up to the last line end.
func lastLineEnd(b []byte) int { return bytes.LastIndexByte(b, '\n') + 1 }
