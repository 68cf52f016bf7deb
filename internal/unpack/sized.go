package unpack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/klauspost/compress/zlib"
	"github.com/klauspost/compress/zstd"

	"github.com/symfilter/symfilter/internal/inflate"
)

// Slack is the number of bytes that [Stream.Into] needs in its buffer after the output.
const Slack = inflate.Slack

// maxWindow bounds the window of a zstd frame in a Stream, in bytes. zstd's own decoder has the
// same default limit.
const maxWindow = 128 << 20

// A Stream is data compressed by zlib or zstd that claims to unpack to Size bytes. The caller
// bounds Packed and Size.
type Stream struct {
	Zstd         bool // not zlib
	Size, Packed uint64
	Src          *io.SectionReader // source, Packed bytes long
}

// Likely reports whether Size is plausible for the packed bytes, so that Size bytes may be
// allocated before they arrive.
func (s Stream) Likely() bool { return Likely(s.Size, s.Packed) }

// Likely reports whether size is at most 1 MiB, or at most about 16 times packed.
func Likely(size, packed uint64) bool { return size <= 1<<20 || size/16 <= packed }

// Window returns the bytes that the decoder takes besides its output. For zstd that is the first
// frame's window, at least MinWindow and at most maxWindow; later frames must not need more.
func (s Stream) Window() uint64 {
	if !s.Zstd {
		return 0
	}
	most := uint64(maxWindow)
	if s.Size < maxWindow {
		most = max(MinWindow, uint64(1)<<bits.Len64(s.Size))
	}
	var buf [zstd.HeaderMaxSize]byte
	n, _ := s.Src.ReadAt(buf[:], 0)
	var h zstd.Header
	if h.Decode(buf[:n]) != nil || h.Skippable {
		return most
	}
	return min(most, max(zstdWindow(h), MinWindow))
}

// Into unpacks into buf, which has room for Slack bytes after the output. If buf is nil, it
// allocates a buffer that grows as bytes arrive. populate is passed to [inflate.Zlib].
func (s Stream) Into(buf []byte, populate func([]byte)) (data []byte, err error) {
	if !s.Zstd && buf != nil {
		defer caught(&err)
		if err := inflate.Zlib(buf, int(s.Size), s.reader(), populate); err != nil {
			return nil, fmt.Errorf("inflate with zlib: %w", err)
		}
		return buf[:s.Size:s.Size], nil
	}
	err = s.decode(func(z io.Reader) (err error) {
		room := buf[:0:min(s.Size, uint64(len(buf)))]
		if buf == nil {
			room = make([]byte, 0, min(s.Size, 1<<20))
		}
		data, err = ReadExactly(z, room, s.Size)
		return err
	})
	return data, err
}

// To unpacks to w. It fails unless the stream has exactly Size bytes and a correct checksum.
func (s Stream) To(w io.Writer) error {
	return s.decode(func(z io.Reader) error {
		n, err := io.CopyBuffer(w, io.LimitReader(z, int64(s.Size)), make([]byte, min(s.Size+1, 1<<20)))
		if err == nil && uint64(n) < s.Size {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return fmt.Errorf("after %d of %d bytes: %w", n, s.Size, err)
		}
		return readEnd(z, s.Size)
	})
}

func (s Stream) reader() *bufio.Reader {
	return bufio.NewReaderSize(s.Src, int(min(s.Packed+16, 256<<10)))
}

func (s Stream) decode(use func(io.Reader) error) (err error) {
	defer caught(&err)
	method, open := "zlib", zlib.NewReader
	if s.Zstd {
		method, open = "zstd", func(packed io.Reader) (io.ReadCloser, error) {
			z, err := newZstd(packed, s.Window())
			if err != nil {
				return nil, err
			}
			return z.IOReadCloser(), nil
		}
	}
	z, err := open(s.reader())
	if err == nil {
		defer z.Close()
		err = use(z)
	}
	if err != nil {
		return fmt.Errorf("inflate with %s: %w", method, err)
	}
	return nil
}

// ReadExactly appends exactly size bytes of r to b, and checks that r ends there. b must be empty
// with a capacity above 0. The buffer grows only as bytes arrive.
func ReadExactly(r io.Reader, b []byte, size uint64) ([]byte, error) {
	for uint64(len(b)) < size {
		if len(b) == cap(b) {
			grown := make([]byte, len(b), min(size, 2*uint64(cap(b))))
			copy(grown, b)
			b = grown
		}
		n, err := io.ReadFull(r, b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return nil, fmt.Errorf("after %d of %d bytes: %w", len(b), size, err)
		}
	}
	return b, readEnd(r, size)
}

// readEnd returns an error if more bytes follow in r, or if the checksum is wrong. The errors
// contain size, the size of the stream in bytes.
func readEnd(r io.Reader, size uint64) error {
	var more [1]byte
	switch n, err := io.ReadFull(r, more[:]); {
	case n > 0:
		return fmt.Errorf("longer than the %d bytes that its header states", size)
	case !errors.Is(err, io.EOF):
		return fmt.Errorf("at the end of %d bytes: %w", size, err) // a wrong checksum
	}
	return nil
}
