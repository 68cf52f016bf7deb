package unpack

import (
	"bufio"
	"errors"
	"io"

	"github.com/klauspost/compress/zstd"
)

// MinWindow is the smallest window, in bytes, of a zstd decoder. zstd uses no larger window without
// --ultra or --long.
const MinWindow = 8 << 20

// A zstdReader reads frames one after the other.
type zstdReader struct {
	*zstd.Decoder
	window uint64 // window that the decoder was made for
}

func openZstd(packed *bufio.Reader, memory *lease, last io.Reader) (io.Reader, error) {
	var frame zstd.Header
	err := io.ErrUnexpectedEOF
	for n := 5; n <= zstd.HeaderMaxSize && errors.Is(err, io.ErrUnexpectedEOF); n++ {
		head, tooShort := packed.Peek(n) // does not wait for more than the header
		err = frame.Decode(head)
		if tooShort != nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	window := zstdWindow(frame)
	in := &zstdFrame{b: packed, left: frame.HeaderSize, sum: frame.HasCheckSum}
	if z, ok := last.(zstdReader); ok && window <= z.window {
		return z, z.Reset(in)
	}
	window = max(MinWindow, window)
	if err := memory.take(window); err != nil {
		return nil, err
	}
	z, err := newZstd(in, window)
	return zstdReader{z, window}, err
}

// zstdWindow returns the window that a frame needs, in bytes.
func zstdWindow(frame zstd.Header) uint64 {
	if frame.SingleSegment {
		return frame.FrameContentSize
	}
	return frame.WindowSize
}

// newZstd returns a decoder for frames with windows up to window. It starts no goroutine.
func newZstd(r io.Reader, window uint64) (*zstd.Decoder, error) {
	return zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxWindow(window))
}

// A zstdFrame reads the bytes of one frame (RFC 8878, section 3.1.1). The decoder alone would read
// the bytes after the frame as another frame.
type zstdFrame struct {
	b    *bufio.Reader
	left int  // bytes left of the current part: a header, a block or the checksum
	sum  bool // a checksum follows the last block
	last bool // the current part is the last block, or comes after it
}

func (f *zstdFrame) Read(p []byte) (int, error) {
	switch {
	case f.left > 0:
	case !f.last:
		b, err := f.b.Peek(3)
		if err != nil {
			f.left = len(b)
			if len(b) == 0 {
				return 0, err
			}
			break
		}
		f.last = b[0]&1 != 0
		f.left = 3 + (int(b[0])|int(b[1])<<8|int(b[2])<<16)>>3
		if b[0]>>1&3 == 1 { // one byte, repeated
			f.left = 3 + 1
		}
	case f.sum:
		f.left, f.sum = 4, false
	default:
		return 0, io.EOF
	}
	n, err := f.b.Read(p[:min(len(p), f.left)])
	f.left -= n
	return n, err
}
