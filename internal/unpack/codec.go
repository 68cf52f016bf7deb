package unpack

import (
	"bufio"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// A Format is one format of compressed files.
type Format struct {
	name   string
	magics []string // beginnings of its files

	// open returns a reader of the unpacked bytes of a member, with memory from the lease. The
	// reader returns io.EOF at the end of the member (bzip2: of the last member), and reads no byte
	// after it. The parameter last is the preceding member's reader, or nil. open fails if the
	// member has the format's first bytes but no valid header. Its error wraps ErrNoMemory if the
	// lease has too little memory.
	open func(packed *bufio.Reader, memory *lease, last io.Reader) (io.Reader, error)

	padded bool // zeros may follow a member
}

// The formats. Their first bytes are defined in RFC 1952 (gzip), in RFC 8878 (zstd), in "The .xz
// File Format" 1.2.1, section 2.1.1.1, and in bzip2's source. zstd files of pzstd begin with a
// skippable frame.
var (
	Gzip  = &Format{"gzip", []string{"\x1f\x8b\x08"}, openGzip, true}
	Zstd  = &Format{"zstd", zstdMagics, openZstd, false}
	XZ    = &Format{"xz", []string{xzMagic}, openXZ, true}
	Bzip2 = &Format{"bzip2", bzip2Magics, openBzip2, false}
)

const xzMagic = "\xfd7zXZ\x00"

func (f *Format) String() string { return f.name }

var zstdMagics = []string{
	"\x28\xb5\x2f\xfd",
	"\x50\x2a\x4d\x18", "\x51\x2a\x4d\x18", "\x52\x2a\x4d\x18", "\x53\x2a\x4d\x18",
	"\x54\x2a\x4d\x18", "\x55\x2a\x4d\x18", "\x56\x2a\x4d\x18", "\x57\x2a\x4d\x18",
	"\x58\x2a\x4d\x18", "\x59\x2a\x4d\x18", "\x5a\x2a\x4d\x18", "\x5b\x2a\x4d\x18",
	"\x5c\x2a\x4d\x18", "\x5d\x2a\x4d\x18", "\x5e\x2a\x4d\x18", "\x5f\x2a\x4d\x18",
}

// isSkippable reports whether head begins a skippable frame of zstd.
func isSkippable(head []byte) bool { return len(head) > 3 && string(head[1:4]) == "\x2a\x4d\x18" }

// bzip2Magics are the beginnings of files for each block size. They include the start of a block or
// the end of an empty file: the header alone may begin a line of text.
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

// LongestMagic is the number of bytes after which FormatOf always decides.
const LongestMagic = 10

// FormatOf returns the format of a compressed file that begins with head, or nil. undecided is true
// if head is too short to decide.
func FormatOf(head []byte) (f *Format, undecided bool) {
	for _, f := range []*Format{Gzip, Zstd, XZ, Bzip2} {
		for _, magic := range f.magics {
			if len(head) >= len(magic) && string(head[:len(magic)]) == magic {
				return f, false
			}
			undecided = undecided || len(head) < len(magic) && magic[:len(head)] == string(head)
		}
	}
	return nil, undecided
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

// member calls f.open, and returns a panic of the decoder as an error.
func (f *Format) member(packed *bufio.Reader, memory *lease, last io.Reader) (r io.Reader, err error) {
	defer caught(&err)
	return f.open(packed, memory, last)
}

// A guarded reader turns a panic of its decoder into an error.
type guarded struct{ r io.Reader }

func (g guarded) Read(b []byte) (n int, err error) {
	defer caught(&err)
	return g.r.Read(b)
}

// caught sets err if a decoder panics. It must be deferred.
func caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("the decoder failed: %v", p)
	}
}
