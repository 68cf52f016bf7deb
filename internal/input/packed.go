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

	// open returns a reader of what a member unpacks to, and takes its memory from the lease. The
	// reader returns io.EOF at the end of the member, and has then read no byte after it. last is the
	// reader of the member before, or nil. An error means that the member only begins like the format,
	// or wraps ErrNoMemory.
	open func(packed *bufio.Reader, memory *lease, last io.Reader) (io.Reader, error)

	padded bool // zeros may follow a member
}

// gzipMagic is the beginning of each gzip file (RFC 1952).
const gzipMagic = "\x1f\x8b\x08"

// xzMagic is the beginning of each xz file ("The .xz File Format" 1.2.1, section 2.1.1.1).
const xzMagic = "\xfd7zXZ\x00"

// codecs are the formats that are unpacked. The beginnings are of RFC 1952, RFC 8878 (a file may
// begin with a skippable frame, as those of pzstd do), "The .xz File Format" 1.2.1, and bzip2's
// source.
var codecs = []*codec{
	{"gzip", []string{gzipMagic}, openGzip, true},
	{"zstd", zstdMagics, openZstd, false},
	{"xz", []string{xzMagic}, openXZ, true},
	{"bzip2", bzip2Magics, openBzip2, false},
}

var zstdMagics = []string{
	"\x28\xb5\x2f\xfd",
	"\x50\x2a\x4d\x18", "\x51\x2a\x4d\x18", "\x52\x2a\x4d\x18", "\x53\x2a\x4d\x18",
	"\x54\x2a\x4d\x18", "\x55\x2a\x4d\x18", "\x56\x2a\x4d\x18", "\x57\x2a\x4d\x18",
	"\x58\x2a\x4d\x18", "\x59\x2a\x4d\x18", "\x5a\x2a\x4d\x18", "\x5b\x2a\x4d\x18",
	"\x5c\x2a\x4d\x18", "\x5d\x2a\x4d\x18", "\x5e\x2a\x4d\x18", "\x5f\x2a\x4d\x18",
}

// isSkippable reports whether a file of zstd begins with a skippable frame.
func isSkippable(head []byte) bool { return len(head) > 3 && string(head[1:4]) == "\x2a\x4d\x18" }

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

// Unpack returns a reader of what r, of the format that Packed has returned, unpacks to, and of what
// follows. It reads no more of r than it needs for what it returns. The memory for it is taken from
// memory until done is called; if there is too little, the error wraps ErrNoMemory. The caller bounds
// the size.
func Unpack(format string, r io.Reader, memory *Memory) (plain io.Reader, done func(), err error) {
	for _, c := range codecs {
		if c.name == format {
			return c.unpack(r, memory)
		}
	}
	return nil, nil, fmt.Errorf("%q is not the format of a compressed file", format)
}

// unpack does the same as Unpack, for this codec.
func (c *codec) unpack(r io.Reader, memory *Memory) (plain io.Reader, done func(), err error) {
	l := &lease{of: memory}
	m := newMembers(c, r, l)
	if err := m.first(); err != nil {
		l.end()
		return nil, nil, err
	}
	return m, l.end, nil
}

func openGzip(packed *bufio.Reader, _ *lease, last io.Reader) (io.Reader, error) {
	z, _ := last.(*gzip.Reader)
	if z == nil {
		z = new(gzip.Reader)
	}
	if err := z.Reset(packed); err != nil {
		return nil, err
	}
	z.Multistream(false)
	return z, nil
}

// zstdWindow is the window for which a decoder is made, or that of the first frame: it is the
// largest that zstd makes without --ultra and --long.
const zstdWindow = 8 << 20 // bytes

// A zstdReader reads frames one after the other.
type zstdReader struct {
	*zstd.Decoder
	window uint64 // that the decoder was made for
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
	window := frame.WindowSize
	if frame.SingleSegment {
		window = frame.FrameContentSize
	}
	in := &zstdFrame{b: packed, left: frame.HeaderSize, sum: frame.HasCheckSum}
	if z, ok := last.(zstdReader); ok && window <= z.window {
		return z, z.Reset(in)
	}
	window = max(zstdWindow, window)
	if err := memory.take(window); err != nil {
		return nil, err
	}
	z, err := zstd.NewReader(in,
		zstd.WithDecoderConcurrency(1), // starts no goroutine
		zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(window),
	)
	return zstdReader{z, window}, err
}

// A zstdFrame reads the bytes of one frame (RFC 8878, section 3.1.1): the decoder would take what
// follows it for another one.
type zstdFrame struct {
	b    *bufio.Reader
	left int  // bytes of the current part: a header, a block or the checksum
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

const bzip2Block = 900_000 * 4 // bytes that the decoder takes for the largest block

func openBzip2(packed *bufio.Reader, memory *lease, _ io.Reader) (io.Reader, error) {
	if err := memory.take(bzip2Block); err != nil {
		return nil, err
	}
	in := &bzip2Members{b: packed, n: -len("BZh9")}
	return &bzip2Reader{bzip2.NewReader(in), in}, nil
}

// A bzip2Reader reads members as long as one follows the other, since a decoder takes the memory of
// a block.
type bzip2Reader struct {
	z  io.Reader
	in *bzip2Members
}

func (r *bzip2Reader) Read(p []byte) (int, error) {
	n, err := r.z.Read(p)
	if n > 0 {
		r.in.n = 0
	}
	return n, err
}

// bzip2Members ends the input of a decoder, which reads single bytes, after a member that no other
// one follows. The end of a member has 48 bits of bzip2End, and 32 bits of a checksum. The decoder
// returns all of a block before it reads on, and has then at most 7 bits that it has not used: the
// end is in the 10 bytes that it reads next.
type bzip2Members struct {
	b       *bufio.Reader
	n       int    // bytes that were read since the last unpacked one
	hi, low uint64 // the last bytes
}

func (m *bzip2Members) ReadByte() (byte, error) {
	if m.n == 10 && m.isEnd() {
		if c, _, _ := peekCodec(m.b); c == nil || c.name != "bzip2" {
			return 0, io.EOF
		}
		m.n = -len("BZh9")
	}
	c, err := m.b.ReadByte()
	if err == nil {
		m.n++
		m.hi, m.low = m.hi<<8|m.low>>56, m.low<<8|uint64(c)
	}
	return c, err
}

// isEnd reports whether the last bytes are the end of a member.
func (m *bzip2Members) isEnd() bool {
	for unused := range 8 { // bits that fill the last byte
		shift := 32 + unused
		end := (m.low>>shift | m.hi<<(64-shift)) & (1<<48 - 1)
		if end == 0x177245385090 {
			return true
		}
	}
	return false
}

func (m *bzip2Members) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	c, err := m.ReadByte()
	if err != nil {
		return 0, err
	}
	p[0] = c
	return 1, nil
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

// member does the same as open; a panic is an error.
func (c *codec) member(packed *bufio.Reader, memory *lease, last io.Reader) (r io.Reader, err error) {
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("the decoder failed: %v", p)
		}
	}()
	return c.open(packed, memory, last)
}
