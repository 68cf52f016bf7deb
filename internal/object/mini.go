package object

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"

	"github.com/symfilter/symfilter/internal/unpack"
)

// miniSection holds MiniDebugInfo: an ELF file, compressed by xz. Its .symtab has the functions
// that .dynsym lacks.
const miniSection = ".gnu_debugdata"

// Mini returns the MiniDebugInfo of the file, an ELF file with the same addresses; nil, nil without
// MiniDebugInfo. The first call unpacks it, and Close closes it. Errors are kept, except
// [ErrMemory].
func (ts *symbolTables) Mini() (*File, error) {
	if !ts.mini.tried && !ts.closed {
		ts.mini.file, ts.mini.err = ts.openMini()
		if ts.mini.err != nil {
			ts.mini.err = fmt.Errorf("section %s: %w", miniSection, ts.mini.err)
		}
		ts.mini.tried = !errors.Is(ts.mini.err, ErrMemory)
	}
	return ts.mini.file, ts.mini.err
}

type mini struct {
	tried bool
	file  *File
	err   error
}

func (ts *symbolTables) openMini() (m *File, err error) {
	s := ts.section(miniSection)
	if s == nil || s.Type == elf.SHT_NOBITS || ts.inMemory {
		return nil, nil // MiniDebugInfo inside of MiniDebugInfo is ignored
	}
	if err := ts.inFile("section", s); err != nil {
		return nil, err
	}
	if s.Size > maxMini {
		return nil, &LimitError{"bytes of MiniDebugInfo", s.Size, maxMini}
	}
	giveBack, err := ts.room.borrow(s.Size)
	if err != nil {
		return nil, err
	}
	defer giveBack()
	packed := make([]byte, s.Size)
	// from the mapping if possible: the reader may be closed
	if b, ok := ts.held(s.Offset, s.Size); ok {
		copy(packed, b)
	} else if err := readFull(ts.r, packed, s.Offset); err != nil {
		return nil, err
	}
	image, a, err := ts.unpackMini(packed)
	defer func() {
		if err != nil {
			ts.room.release(a)
		}
	}()
	if err != nil {
		return nil, err
	}
	if m, err = openImage(image); err != nil {
		return nil, err
	}
	m.onHeap = !a.offHeap()
	m.room.Options = ts.room.Options
	if m.Machine != ts.Machine || m.Class != ts.Class || m.Order != ts.Order {
		return nil, &FormatError{"MiniDebugInfo", "for a different machine than the file that contains it"}
	}
	return m, nil
}

func openImage(image []byte) (*File, error) {
	f, err := Open(bytes.NewReader(image), int64(len(image)), nil)
	if err != nil {
		return nil, err
	}
	f.mapped, f.inMemory, f.onHeap = image, true, true
	return f, nil
}

// unpackMini inflates packed, which xz compressed. It also returns the image's arena, if any, even
// with an error.
func (c *contents) unpackMini(packed []byte) (image []byte, a *arena, err error) {
	cost, err := costOfMini(packed)
	if err != nil {
		return nil, nil, err
	}
	giveBack, err := c.room.borrow(cost.Dictionary)
	if err != nil {
		return nil, nil, err
	}
	defer giveBack()
	z, err := unpack.XZ.Open(bytes.NewReader(packed), unpack.NewMemory(int64(cost.Dictionary)))
	if err != nil {
		return nil, nil, fmt.Errorf("inflate with xz: %w", err)
	}
	defer z.Close()
	room := cost.Size
	if c.room.Take == nil && !unpack.Likely(room, uint64(len(packed))) {
		room = 1 << 20
	}
	b, a, err := c.alloc(room)
	if err != nil {
		return nil, nil, err
	}
	if b, err = unpack.ReadExactly(z, b[:0], cost.Size); err != nil {
		return nil, a, fmt.Errorf("inflate with xz: %w", err)
	}
	return b, a, nil
}

// costOfMini returns the cost of inflating MiniDebugInfo from xz. It fails beyond the limits.
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
