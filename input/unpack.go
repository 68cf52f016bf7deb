package input

import (
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// An unpacker unpacks what is written to it, in a goroutine, and gives it to a Writer.
type unpacker struct {
	in   *io.PipeWriter
	out  *io.PipeReader
	done chan error

	mu      sync.Mutex
	w       *Writer
	written int64 // packed bytes that came
	taken   int64 // packed bytes that the goroutine has read
	used    int64 // taken when it last asked for more: all of these are unpacked
}

// unpack starts the goroutine, which writes to w; Close waits for it.
func unpack(w *Writer) *unpacker {
	u := &unpacker{w: w, done: make(chan error, 1)}
	u.out, u.in = io.Pipe()
	go func() {
		z, err := gzip.NewReader((*packedBytes)(u))
		if err == nil {
			_, err = io.Copy((*unpackedBytes)(u), z) // of an input that is cut, what is there
		}
		if e := u.with((*Writer).Close); err == nil {
			err = e
		}
		u.mu.Lock()
		u.used = math.MaxInt64 // nothing will be unpacked any more
		u.mu.Unlock()
		u.out.CloseWithError(err)
		u.done <- err
	}()
	return u
}

// Write returns when all of p is read, though perhaps not yet unpacked.
func (u *unpacker) Write(p []byte) (int, error) {
	u.mu.Lock()
	u.written += int64(len(p))
	u.mu.Unlock()
	return u.in.Write(p)
}

// Close ends the input.
func (u *unpacker) Close() error {
	u.in.Close()
	return <-u.done
}

// with calls do while the goroutine leaves the Writer alone.
func (u *unpacker) with(do func(*Writer) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return do(u.w)
}

// pending returns what is reports of the Writer, or true if it may get more of what has come.
func (u *unpacker) pending(is func(*Writer) bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.used < u.written || is(u.w)
}

// packedBytes is the side of an unpacker that the goroutine reads.
type packedBytes unpacker

func (p *packedBytes) Read(b []byte) (int, error) {
	p.mu.Lock()
	p.used = p.taken
	p.mu.Unlock()
	n, err := p.out.Read(b)
	p.mu.Lock()
	p.taken += int64(n)
	p.mu.Unlock()
	return n, err
}

// unpackedBytes is the side of an unpacker that the goroutine writes.
type unpackedBytes unpacker

func (u *unpackedBytes) Write(b []byte) (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.w.Write(b)
}
