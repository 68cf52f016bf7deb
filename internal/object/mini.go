package object

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"

	"github.com/ulikunitz/xz"
	"github.com/ulikunitz/xz/lzma"
)

// miniSection holds MiniDebugInfo: an ELF file, compressed by xz, whose .symtab has the functions
// that .dynsym lacks.
const miniSection = ".gnu_debugdata"

// Mini returns the MiniDebugInfo of the file as an ELF file of its own, unpacked by the first call
// and kept. f closes it. Mini returns nil, nil if there is none. It has the same addresses as f. An
// error is kept too.
func (f *File) Mini() (*File, error) {
	if !f.mini.tried && !f.closed {
		f.mini.file, f.mini.err = f.openMini()
		if f.mini.err != nil {
			f.mini.err = fmt.Errorf("section %s: %w", miniSection, f.mini.err)
		}
		f.mini.tried = !errors.Is(f.mini.err, ErrMemory)
	}
	return f.mini.file, f.mini.err
}

type mini struct {
	tried bool
	file  *File
	err   error
}

func (f *File) openMini() (m *File, err error) {
	s := f.section(miniSection)
	if s == nil || s.Type == elf.SHT_NOBITS || f.inMemory {
		return nil, nil // MiniDebugInfo inside of MiniDebugInfo is ignored
	}
	if !within(s.Offset, s.Size, f.size) {
		return nil, &FormatError{"section", fmt.Sprintf("%d bytes at %#x reach beyond the end of the file (%d bytes)", s.Size, s.Offset, f.size)}
	}
	if s.Size > maxMini {
		return nil, &LimitError{"bytes of MiniDebugInfo", s.Size, maxMini}
	}
	giveBack, err := f.room.borrow(s.Size)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	packed := make([]byte, s.Size)
	// f.reader may be closed; the decoder starts no goroutine, and reads a copy
	if b, ok := f.held(s.Offset, s.Size); ok {
		copy(packed, b)
	} else if err := readFull(f.r, packed, s.Offset); err != nil {
		return nil, err
	}
	image, a, err := f.unpackMini(packed)
	defer func() {
		if err != nil {
			f.room.release(a)
		}
	}()
	if err != nil {
		return nil, err
	}
	if m, err = openImage(image); err != nil {
		return nil, err
	}
	m.onHeap = !a.offHeap()
	m.room.Options = f.room.Options
	if m.Machine != f.Machine || m.Class != f.Class || m.Order != f.Order {
		return nil, &FormatError{"MiniDebugInfo", "for another machine than the file around it"}
	}
	return m, nil
}

// openImage opens a file that is in memory.
func openImage(image []byte) (*File, error) {
	f, err := Open(bytes.NewReader(image), int64(len(image)), nil)
	if err != nil {
		return nil, err
	}
	f.mapped, f.inMemory, f.onHeap = image, true, true
	return f, nil
}

// unpackMini inflates one xz stream. If image is in an arena, it returns the arena too, even with
// an error. A panic of the decoder is returned as an error.
func (f *File) unpackMini(packed []byte) (image []byte, a *arena, err error) {
	defer func() {
		if p := recover(); p != nil {
			image, err = nil, fmt.Errorf("inflate by xz: %v", p)
		}
	}()
	claimed, dictionary, err := measureXZ(packed)
	if err != nil {
		return nil, nil, err
	}
	giveBack, err := f.room.borrow(dictionary)
	if err != nil {
		return nil, nil, err
	}
	defer giveBack()
	// The reader allocates at least the smallest dictionary; measureXZ has checked the sizes in the
	// block headers.
	config := xz.ReaderConfig{DictCap: lzma.MinDictCap, SingleStream: true}
	z, err := config.NewReader(bufio.NewReader(bytes.NewReader(packed)))
	if err != nil {
		return nil, nil, fmt.Errorf("inflate by xz: %w", err)
	}
	room := claimed
	if f.room.Take == nil && !likely(claimed, uint64(len(packed))) {
		room = 1 << 20
	}
	b, a, err := f.alloc(room)
	if err != nil {
		return nil, nil, err
	}
	if b, err = readClaimed(z, b[:0], claimed); err != nil {
		return nil, a, fmt.Errorf("inflate by xz: %w", err)
	}
	return b, a, nil
}

// measureXZ returns the inflated size of one xz stream, and the size of the largest dictionary that
// a block needs, so that the cost is known before decoding. It inflates nothing, since each LZMA2
// chunk begins with its sizes (The .xz File Format 1.2.1, sections 2.1 to 3.3).
func measureXZ(b []byte) (claimed, largest uint64, err error) {
	bad := func(said string) (uint64, uint64, error) { return 0, 0, &FormatError{"xz stream", said} }
	const header = 12
	if len(b) < header || string(b[:6]) != "\xfd7zXZ\x00" || b[6] != 0 {
		return bad("no magic at its beginning")
	}
	var check int
	switch b[7] {
	case 0:
		check = 0
	case 1: // CRC-32
		check = 4
	case 4: // CRC-64
		check = 8
	case 10: // SHA-256
		check = 32
	default:
		return bad(fmt.Sprintf("unknown check %d", b[7]))
	}
	packed := uint64(len(b))
	dictionaries := uint64(0)
	for b = b[header:]; ; {
		if len(b) == 0 {
			return bad("ends without an index")
		}
		if b[0] == 0 { // the index
			if claimed > ratioFree && claimed/maxRatio > packed {
				return 0, 0, &LimitError{fmt.Sprintf("bytes, inflated from %d", packed), claimed, packed * maxRatio}
			}
			if dictionaries > maxDictionaries+claimed {
				return 0, 0, &LimitError{"bytes of dictionaries", dictionaries, maxDictionaries + claimed}
			}
			return claimed, largest, nil
		}
		size := (int(b[0]) + 1) * 4
		if size > len(b) {
			return bad("ends inside of a block header")
		}
		dictionary, ok := blockDictionary(b[1 : size-4])
		if !ok {
			return bad("a block that is not LZMA2 alone")
		}
		if dictionary > maxDictionary {
			return 0, 0, &LimitError{"bytes of dictionary", dictionary, maxDictionary}
		}
		largest = max(largest, dictionary)
		dictionaries += dictionary
		n, inflated, ok := measureLZMA2(b[size:])
		if !ok {
			return bad("ends inside of a block")
		}
		claimed += inflated
		if claimed > maxMini {
			return 0, 0, &LimitError{"bytes of MiniDebugInfo, inflated", claimed, maxMini}
		}
		n = size + (n+3)&^3 + check
		if n > len(b) {
			return bad("ends inside of a block")
		}
		b = b[n:]
	}
}

// blockDictionary returns the dictionary size, in bytes, from a block header. b is the header
// without its size and its CRC. ok is false if the header has another filter than LZMA2.
func blockDictionary(b []byte) (size uint64, ok bool) {
	if len(b) == 0 || b[0]&0x3f != 0 { // one filter, no unknown flag
		return 0, false
	}
	flags := b[0]
	b = b[1:]
	for _, present := range []byte{0x40, 0x80} { // the block's sizes
		if flags&present == 0 {
			continue
		}
		for n := 0; ; n++ {
			if n == len(b) || n == 9 {
				return 0, false
			}
			if b[n] < 0x80 {
				b = b[n+1:]
				break
			}
		}
	}
	const lzma2 = 0x21
	if len(b) < 3 || b[0] != lzma2 || b[1] != 1 || b[2] > 40 {
		return 0, false
	}
	return uint64(2|b[2]&1) << (b[2]/2 + 11), true
}

// measureLZMA2 returns the packed and the inflated bytes of the chunks at the front of b.
func measureLZMA2(b []byte) (n int, inflated uint64, ok bool) {
	for n < len(b) {
		control := b[n]
		switch {
		case control == 0:
			return n + 1, inflated, true
		case control <= 2: // stored
			if len(b)-n < 3 {
				return 0, 0, false
			}
			size := int(b[n+1])<<8 + int(b[n+2]) + 1
			inflated += uint64(size)
			n += 3 + size
		case control < 0x80:
			return 0, 0, false
		default:
			if len(b)-n < 5 {
				return 0, 0, false
			}
			inflated += uint64(control&0x1f)<<16 + uint64(b[n+1])<<8 + uint64(b[n+2]) + 1
			n += 5 + int(b[n+3])<<8 + int(b[n+4]) + 1
			if control >= 0xc0 {
				n++ // properties
			}
		}
	}
	return 0, 0, false
}
