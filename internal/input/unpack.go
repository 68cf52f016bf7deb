package input

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/symfilter/symfilter/internal/unpack"
)

// An unpacker unpacks its input in a goroutine, and passes it to a Writer.
type unpacker struct {
	format *unpack.Format
	memory *unpack.Memory
	in     *io.PipeWriter
	out    *io.PipeReader
	done   chan error

	mu      sync.Mutex
	w       *Writer
	written int64 // packed bytes written so far
	taken   int64 // packed bytes that the goroutine has read
	plain   bool  // the input begins like packed data, but is not packed
	// value of taken at the last request for more bytes: all bytes before it are unpacked
	used int64
}

// newUnpacker starts the goroutine, which writes to w. The method Close waits for the goroutine.
func newUnpacker(f *unpack.Format, w *Writer) *unpacker {
	u := &unpacker{format: f, memory: w.t.Memory, w: w, done: make(chan error, 1)}
	if u.memory == nil {
		u.memory = unpack.NewMemory(unpack.DefaultMemory)
	}
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

// unpack gives the Writer the unpacked bytes, and the bytes after the compressed data. The error is
// the Writer's, or an UnpackError.
func (u *unpacker) unpack() error {
	m := u.format.NewReader((*packedBytes)(u), u.memory)
	defer m.Close()
	w := &sink{u: u, r: m}
	_, err := io.Copy(w, m)
	if err == nil || w.err != nil {
		return err
	}
	damage := &UnpackError{Format: u.format.String(), Err: err}
	if u.w.t.Damaged != nil {
		u.w.t.Damaged(damage)
	}
	_, err = io.Copy(w, m)
	damage.Lost = m.Lost()
	return cmp.Or(err, error(damage))
}

// An UnpackError reports damage or a lack of memory in an input that begins like a compressed file.
// Text before the damage, and text after the compressed data, is printed.
type UnpackError struct {
	Format string // gzip, zstd, xz or bzip2
	Err    error  // error of the decoder
	// upper bound of the file's bytes that were neither unpacked nor printed; set when Close
	// returns
	Lost int64
}

func (e *UnpackError) Error() string {
	switch {
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("the %s file is cut off; the contents before its end are printed", e.Format)
	case errors.Is(e.Err, unpack.ErrNoMemory):
		return fmt.Sprintf("unpack the %s file: %v; raise --max-memory, or pass the output of %[1]s -dc to symfilter", e.Format, e.Err)
	}
	return fmt.Sprintf("not a valid %s file: %v; the compressed data after the damage is lost, and only the text after this data is printed", e.Format, e.Err)
}

// Unwrap returns the decoder's error.
func (e *UnpackError) Unwrap() error { return e.Err }

// A sink passes the unpacked bytes to the Writer. It keeps the Writer's error, which distinguishes
// that error from an error of the reader.
type sink struct {
	u   *unpacker
	r   *unpack.Reader
	err error
}

func (w *sink) Write(b []byte) (n int, err error) {
	w.u.mu.Lock()
	defer w.u.mu.Unlock()
	w.u.plain = !w.r.Unpacked()
	n, w.err = w.u.w.Write(b)
	return n, w.err
}

// Write returns when the goroutine has read all of p, which may not be unpacked yet.
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

// unpacker.with calls the function do while the goroutine does not use the Writer.
func (u *unpacker) with(do func(*Writer) error) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return do(u.w)
}

// pending returns true if some written bytes are not unpacked yet. Otherwise it returns is(u.w).
func (u *unpacker) pending(is func(*Writer) bool) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.used < u.written || is(u.w)
}

// isPlain reports whether the input turned out not to be packed.
func (u *unpacker) isPlain() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.plain
}

// A packedBytes is the reader from which the goroutine of an unpacker reads packed bytes.
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
