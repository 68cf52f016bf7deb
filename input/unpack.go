package input

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// An unpacker unpacks its input in a goroutine, and passes it to a Writer.
type unpacker struct {
	in   *io.PipeWriter
	out  *io.PipeReader
	done chan error

	mu      sync.Mutex
	w       *Writer
	written int64 // packed bytes written so far
	taken   int64 // packed bytes that the goroutine has read
	used    int64 // value of taken at the last request for more bytes: all of these are unpacked
}

// unpack starts the goroutine, which writes to w. Close waits for it.
func unpack(w *Writer) *unpacker {
	u := &unpacker{w: w, done: make(chan error, 1)}
	u.out, u.in = io.Pipe()
	go func() {
		err := u.unpack()
		err = cmp.Or(err, u.with((*Writer).Close))
		u.mu.Lock()
		u.used = math.MaxInt64 // nothing more will be unpacked
		u.mu.Unlock()
		u.out.CloseWithError(err)
		u.done <- err
	}()
	return u
}

// unpack passes the unpacked bytes to the Writer, to the end of the packed ones. An input that only
// begins like gzip is passed unchanged: three bytes at the head of a log must not prevent it from
// being read. The error is one of the Writer, or an UnpackError.
func (u *unpacker) unpack() error {
	packed := &recorder{r: (*packedBytes)(u)}
	first := make([]byte, 4<<10)
	n := 0
	z, err := gzip.NewReader(packed)
	if err == nil {
		n, err = io.ReadAtLeast(z, first, 1)
	}
	head := packed.stop()
	if n == 0 && err != nil && !(z != nil && isEnd(err)) {
		if _, err := (*unpackedBytes)(u).Write(head); err != nil {
			return err
		}
		_, err = io.Copy((*unpackedBytes)(u), packed)
		return err
	}
	if _, err := (*unpackedBytes)(u).Write(first[:n]); err != nil {
		return err
	}
	w := &sink{w: (*unpackedBytes)(u)}
	if _, err = io.Copy(w, z); err == nil || w.err != nil {
		return err
	}
	rest, _ := io.Copy(io.Discard, packed)
	return &UnpackError{Rest: rest, Err: err}
}

// isEnd reports whether a decoder's error is due to missing bytes.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// An UnpackError reports an input that begins like a gzip file and is damaged, incomplete, or
// followed by other data. The bytes unpacked before have been printed.
type UnpackError struct {
	Rest int64 // packed bytes after the damage, which are left out
	Err  error // error of the decoder
}

func (e *UnpackError) Error() string {
	switch {
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		return "the gzip file is cut off; what it holds up to there is printed"
	case e.Rest > 0:
		return fmt.Sprintf("not a valid gzip file: %v; %d bytes after that are left out", e.Err, e.Rest)
	}
	return fmt.Sprintf("not a valid gzip file: %v", e.Err)
}

// Unwrap returns the decoder's error.
func (e *UnpackError) Unwrap() error { return e.Err }

// A recorder reads from r, and keeps the bytes read until it is stopped.
type recorder struct {
	r       io.Reader
	head    []byte
	stopped bool
}

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	if !r.stopped {
		r.head = append(r.head, b[:n]...)
	}
	return n, err
}

// stop returns the kept bytes, and keeps no further ones. A gzip header has at most 64 KiB.
func (r *recorder) stop() []byte {
	head := r.head
	r.head, r.stopped = nil, true
	return head
}

// A sink keeps the error of its writer, to distinguish it from an error of a reader.
type sink struct {
	w   io.Writer
	err error
}

func (r *sink) Write(b []byte) (n int, err error) {
	n, r.err = r.w.Write(b)
	return n, r.err
}

// Write returns when the goroutine has read all of p. It may not be unpacked yet.
func (u *unpacker) Write(p []byte) (int, error) {
	u.mu.Lock()
	u.written += int64(len(p))
	u.mu.Unlock()
	return u.in.Write(p)
}

// Close ends the input, and waits for the goroutine.
func (u *unpacker) Close() error {
	u.in.Close()
	return <-u.done
}

// with calls do while the goroutine does not use the Writer.
func (u *unpacker) with(do func(*Writer) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return do(u.w)
}

// pending returns the result of is for the Writer, or true if the Writer may still get bytes that
// are not unpacked.
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
