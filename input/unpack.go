package input

import (
	"cmp"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// An unpacker unpacks its input in a goroutine, and passes it to a Writer.
type unpacker struct {
	codec  *codec
	memory *Memory
	in     *io.PipeWriter
	out    *io.PipeReader
	done   chan error

	mu      sync.Mutex
	w       *Writer
	written int64 // packed bytes written so far
	taken   int64 // packed bytes that the goroutine has read
	plain   bool  // the input begins like a packed one, but is not packed
	used    int64 // value of taken at the last request for more bytes: all of these are unpacked
}

// unpack starts the goroutine, which writes to w. Close waits for it.
func unpack(c *codec, w *Writer) *unpacker {
	u := &unpacker{codec: c, memory: w.t.Memory, w: w, done: make(chan error, 1)}
	if u.memory == nil {
		u.memory = NewMemory(DefaultMemory)
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

// unpack passes the unpacked bytes to the Writer, to the end of the packed ones. An input that only
// begins like a packed one is passed unchanged: a few bytes at the head of a log must not prevent
// it from being read. The error is one of the Writer, or an UnpackError.
func (u *unpacker) unpack() error {
	memory := &lease{of: u.memory}
	defer memory.end()
	packed := &recorder{r: (*packedBytes)(u)}
	first := make([]byte, 4<<10)
	n := 0
	z, err := u.codec.unpacked(packed, memory)
	if err == nil {
		n, err = io.ReadAtLeast(z, first, 1)
	}
	head, all := packed.stop()
	if all && n == 0 && err != nil && !errors.Is(err, ErrNoMemory) && !(z != nil && isEnd(err)) {
		u.mu.Lock()
		u.plain = true
		u.mu.Unlock()
		if _, err := (*unpackedBytes)(u).Write(head); err != nil {
			return err
		}
		_, err = io.Copy((*unpackedBytes)(u), packed)
		return err
	}
	if _, err := (*unpackedBytes)(u).Write(first[:n]); err != nil {
		return err
	}
	if err == nil {
		w := &sink{w: (*unpackedBytes)(u)}
		if _, err = io.Copy(w, z); err == nil || w.err != nil {
			return err
		}
	} else if err == io.EOF {
		return nil // an empty file
	}
	damage := &UnpackError{Format: u.codec.name, Err: err}
	if u.w.t.Damaged != nil {
		u.w.t.Damaged(damage)
	}
	io.Copy(io.Discard, packed) // the side that writes must not wait
	return damage
}

// errTrailing is the error of a decoder if bytes after the end of a file are not another file.
var errTrailing = errors.New("other data follows its end")

// isTrailing reports whether the error of a decoder is due to such bytes; see errTrailing.
func isTrailing(err error) bool {
	return errors.Is(err, errTrailing) || errors.Is(err, zstd.ErrMagicMismatch) ||
		errors.Is(err, bzip2.StructuralError("bad magic value in continuation file"))
}

// isEnd reports whether a decoder's error is due to missing bytes.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// An UnpackError reports an input that begins like a compressed file and is damaged, incomplete,
// followed by other data, or needs more memory than there is. The bytes unpacked before have been
// printed.
type UnpackError struct {
	Format string // of the file: gzip, zstd, xz or bzip2
	Err    error  // error of the decoder
}

func (e *UnpackError) Error() string {
	switch {
	case isTrailing(e.Err):
		return fmt.Sprintf("other data follows the end of the %s file, and is left out", e.Format)
	case errors.Is(e.Err, io.ErrUnexpectedEOF) && (e.Format == "zstd" || e.Format == "bzip2"): // a decoder needs up to 4 bytes to know
		return fmt.Sprintf("the %s file is cut off, or other data follows its end; what it holds up to there is printed", e.Format)
	case errors.Is(e.Err, io.ErrUnexpectedEOF):
		return fmt.Sprintf("the %s file is cut off; what it holds up to there is printed", e.Format)
	case errors.Is(e.Err, ErrNoMemory), errors.Is(e.Err, zstd.ErrWindowSizeExceeded):
		return fmt.Sprintf("unpack the %s file: %v; unpack it with %[1]s -dc, and pass the output to symfilter, or raise --max-memory", e.Format, e.Err)
	}
	return fmt.Sprintf("not a valid %s file: %v; what comes after that is left out", e.Format, e.Err)
}

// Unwrap returns the decoder's error.
func (e *UnpackError) Unwrap() error { return e.Err }

// A recorder reads from r, and keeps the bytes read until it is stopped or has maxRecorded of them.
type recorder struct {
	r       io.Reader
	head    []byte
	stopped bool
	lost    bool // more than maxRecorded bytes were read before it was stopped
}

// maxRecorded is the number of bytes that may decide whether an input is packed. Before the first
// unpacked byte, gzip has a header of 64 KiB, and bzip2 a block of some 900 KB.
const maxRecorded = 2 << 20

func (r *recorder) Read(b []byte) (int, error) {
	n, err := r.r.Read(b)
	switch {
	case r.stopped:
	case len(r.head)+n > maxRecorded:
		r.head, r.stopped, r.lost = nil, true, true
	default:
		r.head = append(r.head, b[:n]...)
	}
	return n, err
}

// stop returns the bytes read so far, and whether these are all. It keeps no further ones.
func (r *recorder) stop() (head []byte, all bool) {
	head = r.head
	r.head, r.stopped = nil, true
	return head, !r.lost
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

// isPlain reports whether the input turned out not to be packed.
func (u *unpacker) isPlain() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.plain
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
