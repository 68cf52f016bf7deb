package object

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"

	"github.com/symfilter/symfilter/internal/unpack"
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

// unpackMini inflates the xz of packed. If image is in an arena, it returns the arena too, even with
// an error.
func (f *File) unpackMini(packed []byte) (image []byte, a *arena, err error) {
	cost, err := costOfMini(packed)
	if err != nil {
		return nil, nil, err
	}
	giveBack, err := f.room.borrow(cost.Dictionary)
	if err != nil {
		return nil, nil, err
	}
	defer giveBack()
	z, err := unpack.XZ.Open(bytes.NewReader(packed), unpack.NewMemory(int64(cost.Dictionary)))
	if err != nil {
		return nil, nil, fmt.Errorf("inflate by xz: %w", err)
	}
	defer z.Close()
	room := cost.Size
	if f.room.Take == nil && !unpack.Likely(room, uint64(len(packed))) {
		room = 1 << 20
	}
	b, a, err := f.alloc(room)
	if err != nil {
		return nil, nil, err
	}
	if b, err = unpack.ReadExactly(z, b[:0], cost.Size); err != nil {
		return nil, a, fmt.Errorf("inflate by xz: %w", err)
	}
	return b, a, nil
}

// costOfMini returns what it costs to inflate the xz of MiniDebugInfo, if that is within the limits.
func costOfMini(packed []byte) (c unpack.XZCost, err error) {
	c, err = unpack.MeasureXZ(packed)
	n := uint64(len(packed))
	switch {
	case c.Dictionary > maxDictionary:
		err = &LimitError{"bytes of dictionary", c.Dictionary, maxDictionary}
	case c.Size > maxMini:
		err = &LimitError{"bytes of MiniDebugInfo, inflated", c.Size, maxMini}
	case err != nil:
	case c.Size > ratioFree && c.Size/maxRatio > n:
		err = &LimitError{fmt.Sprintf("bytes, inflated from %d", n), c.Size, n * maxRatio}
	case c.Dictionaries > maxDictionaries+c.Size:
		err = &LimitError{"bytes of dictionaries", c.Dictionaries, maxDictionaries + c.Size}
	}
	return c, err
}
