package main

import (
	"bytes"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/internal/written"
)

const (
	// bytes written to a pipe at once: while a write blocks, its progress is unknown
	pipePart = 64 << 10
	// first pause before another write to a full disk; doubled each time
	fullPause = 100 * time.Millisecond
	fullMost  = 5 * time.Second // longest pause
)

// A commonOutput writes whole lines of several files to one output. It waits while the disk is
// full. A commonOutput is safe for concurrent use.
type commonOutput struct {
	headers bool // like tail, print the file's name before its lines
	part    int  // bytes written at once; 0: no limit
	stop    <-chan struct{}
	tell    func(format string, args ...any)

	written atomic.Int64 // bytes

	mu   sync.Mutex
	w    io.Writer
	last *fileLines // file of the last printed line
	some bool       // something was written
}

func (o *commonOutput) of(name string, c *config) *fileLines {
	w := &fileLines{o: o, name: name, start: true}
	if c.follow.withName && c.output != outputJSON { // each object has the name
		w.prefix = []byte(wording.Line(name) + ": ")
	}
	return w
}

type fileLines struct {
	o      *commonOutput
	name   string
	prefix []byte // prefix of each line
	quiet  bool   // print nothing
	// set while this file holds o.mu, from the first byte of a line to the last. Package follow
	// completes each line, so o.mu is released
	held  bool
	start bool  // the next byte starts a line
	end   int64 // offset in the output after the last written byte
	buf   []byte
}

// Write prints p. If p ends within a line, other files print only after the end of that line.
func (w *fileLines) Write(p []byte) (int, error) {
	if w.quiet || len(p) == 0 {
		return len(p), nil
	}
	if !w.held {
		w.o.mu.Lock()
		w.held = true
	}
	b := p
	if w.prefix != nil {
		b = w.named(p)
	}
	if w.o.headers && w.o.last != w {
		b = append(w.header(), b...)
	}
	w.o.last, w.o.some = w, true
	w.start = p[len(p)-1] == '\n'
	err := w.o.write(b)
	if err == nil {
		w.end = w.o.written.Load()
	}
	if w.start || err != nil {
		w.release()
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// write writes b to the output. While the disk is full, it retries until a signal arrives. o.mu is
// held.
func (o *commonOutput) write(b []byte) error {
	pause := time.Duration(0)
	for len(b) > 0 {
		part := b
		if o.part > 0 {
			part = b[:min(len(b), o.part)]
		}
		n, err := o.w.Write(part)
		o.written.Add(int64(n))
		b = b[n:]
		switch {
		case err == nil && n < len(part):
			return io.ErrShortWrite
		case err == nil:
		case !written.IsFull(err):
			return err
		default:
			if pause == 0 {
				o.tell("write standard output: %v; retrying until there is space", wording.Cause(err))
			}
			pause = min(max(2*pause, fullPause), fullMost)
			select {
			case <-time.After(pause):
			case <-o.stop:
				return err
			}
		}
	}
	if pause > 0 {
		o.tell("standard output has space again")
	}
	return nil
}

// endLine ends the unfinished line of an earlier run, which the next line must not continue.
func (o *commonOutput) endLine() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.write([]byte{'\n'})
}

// named returns the lines in p, each after the name of its file.
func (w *fileLines) named(p []byte) []byte {
	w.buf = w.buf[:0]
	start := w.start
	for line := range bytes.Lines(p) {
		if start {
			w.buf = append(w.buf, w.prefix...)
		}
		w.buf = append(w.buf, line...)
		start = true
	}
	return w.buf
}

// header returns the line that names the file of the following lines.
func (w *fileLines) header() []byte {
	head := "==> " + wording.Line(w.name) + " <==\n"
	if w.o.some {
		head = "\n" + head
	}
	return []byte(head)
}

func (w *fileLines) release() {
	if w.held {
		w.held = false
		w.o.mu.Unlock()
	}
}
