package input

import (
	"bufio"
	"compress/bzip2"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

// A codec is one format of compressed inputs.
type codec struct {
	name   string
	magics []string // beginnings of its files

	// open returns a reader of the unpacked bytes, and takes its memory from the lease. An error
	// means that the input only begins like the format, or wraps ErrNoMemory.
	open func(packed io.Reader, memory *lease) (io.Reader, error)
}

// gzipMagic is the beginning of each gzip file (RFC 1952).
const gzipMagic = "\x1f\x8b\x08"

// xzMagic is the beginning of each xz file ("The .xz File Format" 1.2.1, section 2.1.1.1).
const xzMagic = "\xfd7zXZ\x00"

// codecs are the formats that are unpacked. The beginnings are of RFC 1952, RFC 8878 (a file may
// begin with a skippable frame, as those of pzstd do), "The .xz File Format" 1.2.1, and bzip2's
// source.
var codecs = []*codec{
	{"gzip", []string{gzipMagic}, openGzip},
	{"zstd", zstdMagics, openZstd},
	{"xz", []string{xzMagic}, openXZ},
	{"bzip2", bzip2Magics, openBzip2},
}

var zstdMagics = []string{
	"\x28\xb5\x2f\xfd",
	"\x50\x2a\x4d\x18", "\x51\x2a\x4d\x18", "\x52\x2a\x4d\x18", "\x53\x2a\x4d\x18",
	"\x54\x2a\x4d\x18", "\x55\x2a\x4d\x18", "\x56\x2a\x4d\x18", "\x57\x2a\x4d\x18",
	"\x58\x2a\x4d\x18", "\x59\x2a\x4d\x18", "\x5a\x2a\x4d\x18", "\x5b\x2a\x4d\x18",
	"\x5c\x2a\x4d\x18", "\x5d\x2a\x4d\x18", "\x5e\x2a\x4d\x18", "\x5f\x2a\x4d\x18",
}

// bzip2Magics are the beginnings of files with each size of blocks: before a block, and before the
// end of a file without one. The three bytes "BZh" may begin a line of text.
var bzip2Magics = []string{
	"BZh1" + bzip2Begin, "BZh2" + bzip2Begin, "BZh3" + bzip2Begin, "BZh4" + bzip2Begin, "BZh5" + bzip2Begin,
	"BZh6" + bzip2Begin, "BZh7" + bzip2Begin, "BZh8" + bzip2Begin, "BZh9" + bzip2Begin,
	"BZh1" + bzip2End, "BZh2" + bzip2End, "BZh3" + bzip2End, "BZh4" + bzip2End, "BZh5" + bzip2End,
	"BZh6" + bzip2End, "BZh7" + bzip2End, "BZh8" + bzip2End, "BZh9" + bzip2End,
}

const (
	bzip2Begin = "1AY&SY"
	bzip2End   = "\x17\x72\x45\x38\x50\x90"
)

// codecOf returns the codec of an input that begins with head, or nil. If head is too short to
// tell, undecided is true.
func codecOf(head []byte) (c *codec, undecided bool) {
	for _, c := range codecs {
		for _, magic := range c.magics {
			if len(head) >= len(magic) && string(head[:len(magic)]) == magic {
				return c, false
			}
			undecided = undecided || begins(magic, head)
		}
	}
	return nil, undecided
}

// LongestMagic is the number of bytes that always decide whether an input is packed.
const LongestMagic = 10

// Packed returns the format of a compressed input that begins with head: gzip, zstd, xz or bzip2. It
// returns "" for other inputs. If head is too short to decide, undecided is true.
func Packed(head []byte) (format string, undecided bool) {
	c, undecided := codecOf(head)
	if c == nil {
		return "", undecided
	}
	return c.name, false
}

// Unpack returns a reader of what r, of the format that Packed has returned, unpacks to. It reads no
// more of r than it needs for what it returns. The memory for it is taken from memory until done is
// called; if there is too little, the error wraps ErrNoMemory. The caller bounds the size.
func Unpack(format string, r io.Reader, memory *Memory) (plain io.Reader, done func(), err error) {
	l := &lease{of: memory}
	for _, c := range codecs {
		if c.name == format {
			plain, err = c.unpacked(r, l)
		}
	}
	if plain == nil && err == nil {
		err = fmt.Errorf("%q is not the format of a compressed file", format)
	}
	if err != nil {
		l.end()
		return nil, nil, err
	}
	return plain, l.end, nil
}

func openGzip(packed io.Reader, _ *lease) (io.Reader, error) {
	b := bufio.NewReader(packed)
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &gzipReader{z: z, b: b}, nil
}

// A gzipReader reads members one after the other. The library's own reader returns the end of a
// member only when the next one has begun, or the input has ended.
type gzipReader struct {
	z     *gzip.Reader
	b     *bufio.Reader
	ended bool // the current member has ended
}

func (r *gzipReader) Read(p []byte) (int, error) {
	for {
		if r.ended {
			if err := r.skipZeros(); err != nil {
				return 0, err
			}
			if err := r.z.Reset(r.b); err != nil {
				return 0, errTrailing
			}
			r.z.Multistream(false)
			r.ended = false
		}
		n, err := r.z.Read(p)
		if err == io.EOF {
			r.ended, err = true, nil
		}
		if n > 0 || err != nil || len(p) == 0 {
			return n, err
		}
	}
}

// skipZeros skips the zeros after a member, which tapes and copies of blocks add, as gzip itself
// does. It returns io.EOF if nothing else follows.
func (r *gzipReader) skipZeros() error {
	for skipped := false; ; skipped = true {
		c, err := r.b.ReadByte()
		if err != nil {
			return err
		}
		if c == 0 {
			continue
		}
		if r.b.UnreadByte(); skipped {
			return errTrailing
		}
		return nil
	}
}

// The window is that of the first frame, or of the largest that zstd makes without --ultra and
// --long: so much is reserved for later frames.
const zstdWindow = 8 << 20 // bytes

func openZstd(packed io.Reader, memory *lease) (io.Reader, error) {
	b := bufio.NewReader(packed)
	var first zstd.Header
	err := io.ErrUnexpectedEOF
	for n := 5; n <= zstd.HeaderMaxSize && errors.Is(err, io.ErrUnexpectedEOF); n++ {
		head, tooShort := b.Peek(n) // does not wait for more than the header
		err = first.Decode(head)
		if tooShort != nil {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	window := max(zstdWindow, first.WindowSize)
	if first.SingleSegment {
		window = max(zstdWindow, first.FrameContentSize)
	}
	if err := memory.take(window); err != nil {
		return nil, err
	}
	return zstd.NewReader(b,
		zstd.WithDecoderConcurrency(1), // starts no goroutine
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window),
	)
}

const bzip2Block = 900_000 * 4 // bytes that the decoder takes for the largest block

func openBzip2(packed io.Reader, memory *lease) (io.Reader, error) {
	if err := memory.take(bzip2Block); err != nil {
		return nil, err
	}
	return bzip2.NewReader(bufio.NewReader(packed)), nil
}

// Memory bounds the bytes that the decoders of all compressed inputs together may take for their
// windows. Its methods are safe for concurrent use.
type Memory struct {
	mu          sync.Mutex
	total, left uint64
}

// DefaultMemory is the number of bytes for the windows of an input, if [Translators] have no
// Memory.
const DefaultMemory = 256 << 20

// NewMemory returns a Memory of n bytes.
func NewMemory(n int64) *Memory { return &Memory{total: uint64(max(n, 0)), left: uint64(max(n, 0))} }

// ErrNoMemory is wrapped by the error for an input whose windows the Memory cannot hold.
var ErrNoMemory = errors.New("not enough memory for compressed inputs")

// A lease is what one input has of a Memory.
type lease struct {
	of *Memory
	n  uint64
}

// take makes the lease n bytes large, if it is smaller.
func (l *lease) take(n uint64) error {
	if n <= l.n {
		return nil
	}
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	if n-l.n > l.of.left {
		return fmt.Errorf("%w: it needs %d MiB, of which %d of %d are left", ErrNoMemory, (n-1)>>20+1, (l.of.left+l.n)>>20, l.of.total>>20)
	}
	l.of.left -= n - l.n
	l.n = n
	return nil
}

// end returns the bytes.
func (l *lease) end() {
	l.of.mu.Lock()
	defer l.of.mu.Unlock()
	l.of.left += l.n
	l.n = 0
}

// A guarded reader makes a panic of a decoder an error.
type guarded struct{ r io.Reader }

func (g guarded) Read(b []byte) (n int, err error) {
	defer func() {
		if p := recover(); p != nil {
			n, err = 0, fmt.Errorf("the decoder failed: %v", p)
		}
	}()
	return g.r.Read(b)
}

// unpacked returns a reader of the unpacked bytes.
func (c *codec) unpacked(packed io.Reader, memory *lease) (r io.Reader, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("the decoder failed: %v", p)
		}
	}()
	r, err = c.open(packed, memory)
	if err != nil {
		return nil, err
	}
	return guarded{r}, nil
}
