package judge

import (
	"bytes"
	"debug/elf"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// hasCode reports whether the file has the listed code around addr. It ignores listed bytes before
// or after the segment, but compares at least dialect.MinListed bytes.
func (m *Image) hasCode(c *dialect.Code, addr uint64) bool {
	want := c.Bytes(m.File.Order)
	before := c.At * c.Width
	if uint64(before) > addr {
		return false
	}
	for start := range before + 1 { // the listing may begin before the segment
		loaded := m.File.Loaded(addr - uint64(before-start))
		if loaded == nil {
			continue
		}
		n := min(len(want)-start, len(loaded))
		return n >= dialect.MinListed && before < start+n && bytes.Equal(loaded[:n], want[start:start+n])
	}
	return false
}

// inCode returns the address in the file for an offset in an executable mapping of size bytes. It
// takes the first executable segment that fills such a mapping in whole pages. ok is false if there
// is none.
func (m *Image) inCode(offset, size uint64) (addr uint64, ok bool) {
	for _, s := range m.Segments {
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0 {
			continue
		}
		for _, page := range []uint64{4 << 10, 16 << 10, 64 << 10} {
			first := s.Offset &^ (page - 1)
			if end := (s.Offset + s.MemSize + page - 1) &^ (page - 1); end-first == size && offset < size {
				return s.Addr - (s.Offset - first) + offset, true
			}
		}
	}
	return 0, false
}

// crashed locates f, the frame of a crashed process, by the code that the log lists. It reports
// whether it has set the Place of f.
func (t *Trace) crashed(f *Frame) bool {
	c := f.Crash
	if c == nil || f.Place.Verified != "" {
		return false
	}
	if f.Kind == dialect.CodeOffset && c.Addr != 0 {
		f.Value, f.Addr = c.Addr-c.Start, c.Addr
	}
	if len(c.Codes) == 0 {
		return false
	}
	images := []*Image{}
	if v := t.verdictOf(f); v != nil {
		images = append(images, v.image)
	}
	if len(images) == 1 && !images[0].Given && t.Named != nil {
		images = append(images, t.Named(f.Module)...)
	}
	f.Place.Err = ErrNoModule
	refused := false
	for _, m := range images {
		if m.Err != nil || m.File == nil {
			if !refused {
				f.Place = Place{Image: m, Err: m.Err}
			}
			continue
		}
		found := false
		fault := object.Guard(func() { found = m.showsCrash(f) })
		if fault == nil && found {
			addr, _ := numbered(m, f)
			f.Place = Place{Image: m, Addr: addr, Verified: ByCode}
			return true
		}
		refused = true
		f.Place = Place{Image: m, Err: ErrCode}
	}
	return true
}

// showsCrash reports whether the file has, at f's address, the code of at least one listing of f's
// crash.
func (m *Image) showsCrash(f *Frame) bool {
	addr, ok := numbered(m, f)
	if !ok || !m.isCode(addr) {
		return false
	}
	for i := range f.Crash.Codes {
		if m.hasCode(&f.Crash.Codes[i], addr) {
			return true
		}
	}
	return false
}

// listed compares the code listed in f's line with the file's code. Code with few distinct byte
// values can refute a file, but not prove it.
func (c *check) listed(f *Frame) {
	if len(f.Code) == 0 {
		return
	}
	if !bytes.HasPrefix(c.of.image.File.Loaded(c.addr), f.Code) {
		c.err, c.of.refuted = ErrCode, ErrCode
		return
	}
	different := make(map[byte]bool)
	for _, b := range f.Code {
		different[b] = true
	}
	if len(different) >= dialect.MinValues {
		c.agree()
		c.verified = ByCode
	}
}
