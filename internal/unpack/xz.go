package unpack

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// The xz decoder allocates as much memory as a block's header demands, up to 4 GiB. It keeps a
// record of each block until the end of the stream, and reads until the caller's buffer is full.
// Therefore an xzGuard parses the decoder's input. It checks each header before the decoder has all
// of it, and counts the unpacked bytes of the chunks so far.

// Bounds on the cost of an xz stream. Each block has a new dictionary, which the decoder clears.
// All dictionaries together may have xzDictionaries bytes (clearing them takes about a second),
// plus xzPerByte bytes for each unpacked byte.
const (
	xzBlocks       = 1 << 18 // blocks of a stream; 16 bytes are kept for each
	xzDictionaries = 4 << 30 // bytes
	xzPerByte      = 4096
)

func openXZ(packed *bufio.Reader, memory *lease, last io.Reader) (io.Reader, error) {
	r, _ := last.(*xzReader)
	if r == nil {
		r = &xzReader{guard: newXZGuard(packed, xzDictionaries, memory.take)}
	}
	r.guard.ended = false
	// DictCap is a minimum; the guard checks dictionary sizes in block headers
	z, err := xz.ReaderConfig{DictCap: lzma.MinDictCap}.NewReader(r.guard)
	if err != nil {
		return nil, err
	}
	r.z = z
	return r, nil
}

// An xzReader reads the unpacked bytes. Its Read returns the bytes of the current chunk, without
// waiting for the next chunk.
type xzReader struct {
	z     io.Reader
	guard *xzGuard
	taken uint64 // bytes that were read
}

func (r *xzReader) Read(b []byte) (int, error) {
	if n := max(1, r.guard.unpacked-r.taken); uint64(len(b)) > n {
		b = b[:n] // 1: the decoder reads the next chunk's header
	}
	n, err := r.z.Read(b)
	r.taken += uint64(n)
	return n, err
}

// An XZCost is the cost of unpacking an xz file, from the sizes in its structure.
type XZCost struct {
	Size         uint64 // bytes, unpacked
	Dictionary   uint64 // bytes of the largest dictionary
	Dictionaries uint64 // bytes of all dictionaries, which are cleared one after the other
}

// MeasureXZ returns the cost of an xz file without unpacking it: each LZMA2 chunk begins with its
// sizes. The file may end within its index.
func MeasureXZ(packed []byte) (c XZCost, err error) {
	g := newXZGuard(nil, math.MaxInt64, func(dictionary uint64) error {
		c.Dictionary = max(c.Dictionary, dictionary)
		return nil
	})
	err = g.follow(packed)
	if err == nil && g.padding == 0 {
		err = fmt.Errorf("%w: the index at the end is missing", errXZ)
	}
	c.Size, c.Dictionaries = g.unpacked, g.dictionaries
	return c, err
}

// An xzGuard passes an xz file to the decoder. It parses the structure of the file ("The .xz File
// Format" 1.2.1, section 2) to bound dictionaries and blocks. The decoder checks the rest.
type xzGuard struct {
	r    *bufio.Reader
	most uint64                        // bytes of all dictionaries, besides xzPerByte per byte
	take func(dictionary uint64) error // called for each block

	field []byte                           // the current field so far
	want  int                              // bytes of the current field
	whole func(g *xzGuard, b []byte) error // called with the whole field
	skip  uint64                           // bytes to pass before the next field

	// set at the end of a stream, so that the decoder gets io.EOF; otherwise it would read the
	// following bytes as another stream
	ended        bool
	check        int    // bytes of the check after each block
	blocks       int    // blocks of the current stream
	packed       uint64 // bytes of the current block's chunks
	records      uint64 // numbers of the index that are left
	padding      int    // bytes of the index so far; 0 before the first one
	unpacked     uint64 // bytes of the chunks so far
	dictionaries uint64 // bytes of all dictionaries so far
}

func newXZGuard(packed *bufio.Reader, most uint64, take func(dictionary uint64) error) *xzGuard {
	g := &xzGuard{r: packed, most: most, take: take}
	g.next(12, (*xzGuard).streamHeader)
	return g
}

func (g *xzGuard) next(n int, whole func(*xzGuard, []byte) error) {
	g.field, g.want, g.whole = g.field[:0], n, whole
}

func (g *xzGuard) Read(b []byte) (int, error) {
	if g.ended {
		return 0, io.EOF
	}
	left := uint64(g.want - len(g.field))
	if g.skip > 0 {
		left = g.skip
	}
	n, err := g.r.Read(b[:min(uint64(len(b)), left)])
	if bad := g.follow(b[:n]); bad != nil {
		return 0, bad
	}
	return n, err
}

// ReadByte makes an xzGuard an [io.ByteReader], so that the decoder does not wrap it in another
// reader.
func (g *xzGuard) ReadByte() (byte, error) {
	if g.ended {
		return 0, io.EOF
	}
	c, err := g.r.ReadByte()
	if err != nil {
		return 0, err
	}
	return c, g.follow([]byte{c})
}

// follow parses the bytes that the decoder has read, as the next part of the file.
func (g *xzGuard) follow(b []byte) error {
	for len(b) > 0 {
		if g.skip > 0 {
			n := min(g.skip, uint64(len(b)))
			g.skip -= n
			b = b[n:]
			continue
		}
		n := min(g.want-len(g.field), len(b))
		g.field = append(g.field, b[:n]...)
		b = b[n:]
		if len(g.field) == g.want {
			if err := g.whole(g, g.field); err != nil {
				return err
			}
		}
	}
	return nil
}

var errXZ = errors.New("xz: not a well-formed file")

func (g *xzGuard) streamHeader(b []byte) error {
	if string(b[:len(xzMagic)]) != xzMagic {
		return fmt.Errorf("%w: the magic bytes at the beginning are missing", errXZ)
	}
	switch b[7] {
	case 0:
		g.check = 0
	case 1: // CRC-32
		g.check = 4
	case 4: // CRC-64
		g.check = 8
	case 10: // SHA-256
		g.check = 32
	default:
		return fmt.Errorf("%w: unknown check %d", errXZ, b[7])
	}
	g.blocks = 0
	g.next(1, (*xzGuard).blockOrIndex)
	return nil
}

func (g *xzGuard) blockOrIndex(b []byte) error {
	if b[0] == 0 {
		g.padding = 1
		g.next(1, (*xzGuard).indexCount)
		return nil
	}
	if g.blocks++; g.blocks > xzBlocks {
		return fmt.Errorf("%w: more than %d blocks", errXZ, xzBlocks)
	}
	g.next((int(b[0])+1)*4-1, (*xzGuard).blockHeader)
	return nil
}

// blockHeader parses a block header. b does not have the first byte of the header, which is its
// size.
func (g *xzGuard) blockHeader(b []byte) error {
	size, ok := blockDictionary(b[:len(b)-4])
	if !ok {
		return fmt.Errorf("%w: a block uses filters other than LZMA2", errXZ)
	}
	g.dictionaries += size
	if g.dictionaries > g.most+xzPerByte*g.unpacked {
		return fmt.Errorf("xz: blocks of %d bytes need too much memory: %d bytes", g.unpacked, g.dictionaries)
	}
	if err := g.take(size); err != nil {
		return err
	}
	g.packed = 0
	g.next(1, (*xzGuard).chunk)
	return nil
}

// blockDictionary returns the dictionary size in a block header, in bytes. b is the header without
// its size and CRC. ok is false if the header names filters other than LZMA2.
func blockDictionary(b []byte) (size uint64, ok bool) {
	flags := b[0]
	if flags&0x3f != 0 { // one filter, no unknown flag
		return 0, false
	}
	b = b[1:]
	for _, present := range []byte{0x40, 0x80} { // the block's sizes
		if flags&present == 0 {
			continue
		}
		n := 0
		for n < len(b) && b[n] >= 0x80 {
			n++
		}
		if n == len(b) {
			return 0, false
		}
		b = b[n+1:]
	}
	const lzma2 = 0x21
	if len(b) < 3 || b[0] != lzma2 || b[1] != 1 || b[2] > 40 {
		return 0, false
	}
	if b[2] == 40 {
		return 1<<32 - 1, true
	}
	return uint64(2|b[2]&1) << (b[2]/2 + 11), true
}

// chunk parses the first byte of a chunk.
func (g *xzGuard) chunk(b []byte) error {
	switch c := b[0]; {
	case c == 0: // the block ends: padding, and the check
		g.packed++
		g.skip = (4-g.packed%4)%4 + uint64(g.check)
		g.next(1, (*xzGuard).blockOrIndex)
		return nil
	case c <= 2:
		g.want = 3
		g.whole = (*xzGuard).storedChunk
	case c < 0x80:
		return fmt.Errorf("%w: an unknown chunk", errXZ)
	case c < 0xc0:
		g.want = 5
		g.whole = (*xzGuard).packedChunk
	default:
		g.want = 6 // with properties
		g.whole = (*xzGuard).packedChunk
	}
	return nil
}

func (g *xzGuard) storedChunk(b []byte) error {
	n := uint64(b[1])<<8 + uint64(b[2]) + 1
	g.unpacked += n
	return g.endChunk(len(b), n)
}

func (g *xzGuard) packedChunk(b []byte) error {
	g.unpacked += uint64(b[0]&0x1f)<<16 + uint64(b[1])<<8 + uint64(b[2]) + 1
	return g.endChunk(len(b), uint64(b[3])<<8+uint64(b[4])+1)
}

func (g *xzGuard) endChunk(header int, n uint64) error {
	g.packed += uint64(header) + n
	g.skip = n
	g.next(1, (*xzGuard).chunk)
	return nil
}

// indexCount parses one byte of the index's number of records.
func (g *xzGuard) indexCount(b []byte) error {
	c := b[len(b)-1]
	g.padding++
	if c >= 0x80 {
		if g.want++; g.want > 9 {
			return fmt.Errorf("%w: a number is too long", errXZ)
		}
		return nil
	}
	count := uint64(0)
	for i, c := range b {
		count |= uint64(c&0x7f) << (7 * i)
	}
	if count > xzBlocks {
		return fmt.Errorf("%w: more than %d blocks", errXZ, xzBlocks)
	}
	g.records = 2 * count // each has two sizes
	g.indexNext()
	return nil
}

// indexNumber parses one byte of a number in a record of the index.
func (g *xzGuard) indexNumber(b []byte) error {
	g.padding++
	if b[0] < 0x80 {
		g.records--
	}
	g.indexNext()
	return nil
}

func (g *xzGuard) indexNext() {
	if g.records > 0 {
		g.next(1, (*xzGuard).indexNumber)
		return
	}
	g.skip = uint64(3 & -g.padding) // the padding; the CRC and the footer follow
	g.next(4+12, (*xzGuard).footer)
}

func (g *xzGuard) footer([]byte) error {
	g.ended = true
	g.next(12, (*xzGuard).streamHeader)
	return nil
}
