package object

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// MaxUnpacked is the number of bytes that Unpack inflates a file to, at most. The largest module of
// Linux, amdgpu, has 30 MB without debug information.
const MaxUnpacked = maxMini

// IsPacked reports whether a file that begins with b is compressed by xz, zstd or gzip.
func IsPacked(b []byte) bool {
	return bytes.HasPrefix(b, []byte("\xfd7zXZ\x00")) || bytes.HasPrefix(b, []byte("\x28\xb5\x2f\xfd")) || bytes.HasPrefix(b, []byte("\x1f\x8b"))
}

// Unpack inflates a file that is compressed as a whole, by xz, zstd or gzip, as modules of Linux are.
// A panic of a decoder is returned as an error.
func Unpack(packed []byte) (image []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			image, err = nil, fmt.Errorf("unpack: %v", p)
		}
	}()
	var z io.Reader
	switch in := bufio.NewReader(bytes.NewReader(packed)); {
	case bytes.HasPrefix(packed, []byte("\xfd")):
		if _, _, err := measureXZ(packed); err != nil {
			return nil, err
		}
		z, err = xz.ReaderConfig{DictCap: lzma.MinDictCap, SingleStream: true}.NewReader(in)
	case bytes.HasPrefix(packed, []byte("\x28")):
		var d *zstd.Decoder
		if d, err = zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxWindow(maxWindow)); err == nil {
			defer d.Close()
			z = d
		}
	default:
		z, err = gzip.NewReader(in)
	}
	if err != nil {
		return nil, fmt.Errorf("unpack: %w", err)
	}
	image, err = io.ReadAll(io.LimitReader(z, MaxUnpacked+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("unpack: %w", err)
	case len(image) > MaxUnpacked:
		return nil, &LimitError{"bytes, unpacked", uint64(len(image)), MaxUnpacked}
	}
	return image, nil
}
