package daemon

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// block is the number of bytes read at once. It bounds the unwritten bytes of a stream, except for
// a long line from a connection: see [Limits].
const block = 256 << 10

type stdin struct {
	p  *pipeline
	in *lineReader
}

func (s *stdin) run(ctx context.Context) error {
	if s.in.turns.take(ctx) != nil { // a pipeline that is being removed may still have the turn
		return nil
	}
	defer s.in.turns.give()
	to := s.p.session("stdin", nil)
	if s.in.context != nil {
		if err := to.restore(s.in.context); err != nil {
			s.p.log.Warn("the context of standard input is not used", "error", err)
		}
	}
	err := s.in.pass(ctx, to)
	if ctx.Err() != nil && !s.p.ending.Load() {
		s.in.context, err = to.suspend()
		return err
	}
	if ctx.Err() != nil { // no later input continues an unfinished line
		_, err = to.Write(s.in.buf[:s.in.kept])
	}
	return errors.Join(err, s.p.exceptDamage(to.Close()))
}

func (*stdin) close() error { return nil }

// A lineReader reads whole lines. A read cannot be interrupted: if an input stops during a read,
// the next input gets the result. Only the input that holds the turn may use the lineReader.
type lineReader struct {
	in      io.Reader
	turns   turns
	context []byte // context of the last input's suspended session

	buf   []byte
	kept  int // bytes of an unfinished line in buf
	reads chan someRead
	busy  bool // a read is in progress
}

type someRead struct {
	n   int
	err error
}

func newLineReader(in io.Reader) *lineReader {
	return &lineReader{in: in, turns: newTurns(), reads: make(chan someRead, 1)}
}

// pass gives lines to w in blocks, until the end of the input, an error, or the end of ctx. A line
// longer than a block is split. The last line may have no line end.
func (l *lineReader) pass(ctx context.Context, w io.Writer) error {
	if l.buf == nil {
		l.buf = make([]byte, block)
	}
	for {
		if !l.busy {
			l.busy = true
			go l.read(l.buf[l.kept:])
		}
		var got someRead
		select {
		case <-ctx.Done():
			return ctx.Err()
		case got = <-l.reads:
			l.busy = false
		}
		have := l.buf[:l.kept+got.n]
		whole := len(have)
		if got.err == nil && len(have) < len(l.buf) {
			whole = lastLineEnd(have)
		}
		if whole > 0 {
			if _, err := w.Write(have[:whole]); err != nil {
				return err
			}
		}
		l.kept = copy(l.buf, have[whole:])
		if got.err == io.EOF {
			return nil
		}
		if got.err != nil {
			return got.err
		}
	}
}

func (l *lineReader) read(b []byte) {
	n, err := l.in.Read(b)
	l.reads <- someRead{n, err}
}

// lastLineEnd returns the number of bytes in the whole lines of b.
func lastLineEnd(b []byte) int { return bytes.LastIndexByte(b, '\n') + 1 }
