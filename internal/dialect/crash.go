package dialect

import (
	"bytes"
	"debug/elf"
	"math/bits"

	"github.com/symfilter/symfilter/internal/object"
)

// A Crash holds what the kernel logs of a process that it has killed, apart from the frame. Later
// lines of the log add to it, so it belongs to the Reader of the frame.
type Crash struct {
	Start, Size uint64 // address and bytes of the mapping of the code; Size is 0 if it is not known
	Addr        uint64 // address of the frame, if a later line has it; otherwise 0

	codes []code // listings of the first maxCodes lines of code after the frame
}

// If several processes die at once, their lines of code may come after the frames of all of them.
const (
	maxCodes   = 4
	maxCrashes = 4
)

// A code is a listing of the code around a frame: Code: 89 e5 <89> 3a …
type code struct {
	units []uint32 // in the order of memory
	width int      // bytes of a unit: 1, 2 or 4
	at    int      // index of the unit at the address of the frame
}

const (
	maxUnits  = 128 // units of a listing; the kernel lists 64 bytes on x86
	minListed = 16  // bytes of a file that must agree with the listing; fewer may agree by chance
	minValues = 4   // different units that a listing must have, because padding proves nothing
)

// crash returns the Crash for a frame of the current line.
func (r *Reader) crash(start, size uint64) *Crash {
	c := &Crash{Start: start, Size: size}
	if len(r.crashes) == maxCrashes {
		copy(r.crashes, r.crashes[1:])
		r.crashes = r.crashes[:maxCrashes-1]
	}
	r.crashes = append(r.crashes, c)
	return c
}

// codeLine adds the listing of a line to the crashes before it.
func codeLine(r *Reader, b []byte, at int) {
	if r.listsKernel(b[at+len("ode: "):]) {
		return
	}
	if len(r.crashes) == 0 || r.inPast {
		return
	}
	listing, ok := parseCode(b[at+len("ode: "):])
	if !ok {
		return
	}
	for _, c := range r.crashes {
		if len(c.codes) < maxCodes {
			c.codes = append(c.codes, listing)
		}
	}
}

// counterLine sets the address of the last crash from the program counter of a dump of registers.
func counterLine(r *Reader, b []byte, at int) {
	if len(r.crashes) == 0 || r.inPast {
		return
	}
	c := r.crashes[len(r.crashes)-1]
	from := bytes.IndexByte(b[at:], ':') + at + 2
	addr, _, ok := hexAt(b, from)
	if ok && c.Addr == 0 && addr-c.Start < c.Size {
		c.Addr = addr
	}
}

// parseCode parses a listing: units of equal size, of which one is in brackets.
func parseCode(b []byte) (c code, ok bool) {
	c.at = -1
	for _, word := range bytes.Fields(b) {
		if n := len(word); n > 2 && (word[0] == '<' && word[n-1] == '>' || word[0] == '(' && word[n-1] == ')') {
			if c.at >= 0 {
				return c, false
			}
			word, c.at = word[1:n-1], len(c.units)
		}
		value, end, parsed := hexAt(word, 0)
		if width := len(word) / 2; !parsed || end != len(word) || len(word)%2 != 0 || width > 4 || c.width != 0 && width != c.width || len(c.units) == maxUnits {
			return c, false
		} else {
			c.width = width
		}
		c.units = append(c.units, uint32(value))
	}
	return c, c.at >= 0 && c.width != 3 && len(c.units)*c.width >= minListed && c.values() >= minValues
}

// values returns the number of different units, at most 64.
func (c *code) values() int {
	var seen uint64
	for _, u := range c.units {
		seen |= 1 << (u * 0x9e3779b1 >> 26)
	}
	return bits.OnesCount64(seen)
}

// bytes returns the listing in the byte order of f.
func (c *code) bytes(f *object.File) []byte {
	b := make([]byte, len(c.units)*c.width)
	for i, u := range c.units {
		switch at := b[i*c.width:]; c.width {
		case 1:
			at[0] = byte(u)
		case 2:
			f.Order.PutUint16(at, uint16(u))
		default:
			f.Order.PutUint32(at, u)
		}
	}
	return b
}

// hasCode reports whether the file has the listing around addr. Bytes outside the segment are
// not compared.
func (m *Image) hasCode(c *code, addr uint64) bool {
	want := c.bytes(m.File)
	before := c.at * c.width
	if uint64(before) > addr {
		return false
	}
	for start := range before + 1 { // the listing may begin before the segment
		loaded := m.File.Loaded(addr - uint64(before-start))
		if loaded == nil {
			continue
		}
		n := min(len(want)-start, len(loaded))
		return n >= minListed && before < start+n && bytes.Equal(loaded[:n], want[start:start+n])
	}
	return false
}

// inCode returns the address in the file of an offset in the mapping of an executable segment. The
// mapping has size bytes.
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

// crashed locates the frame of a process that died, by the listing of its code, and reports whether
// there is a listing.
func (t *Trace) crashed(f *Frame) bool {
	c := f.Crash
	if c == nil || f.Place.Verified != "" {
		return false
	}
	if f.Kind == CodeOffset && c.Addr != 0 {
		f.Value, f.Addr = c.Addr-c.Start, c.Addr
	}
	if len(c.codes) == 0 {
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

// showsCrash reports whether the file has the code of f's crash at its place.
func (m *Image) showsCrash(f *Frame) bool {
	addr, ok := numbered(m, f)
	if !ok || !m.isCode(addr) {
		return false
	}
	for i := range f.Crash.codes {
		if m.hasCode(&f.Crash.codes[i], addr) {
			return true
		}
	}
	return false
}

// listed compares the code that f's line lists with that of the file. Code of few different bytes
// refutes a file, but does not prove it.
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
	if len(different) >= minValues {
		c.agree()
		c.verified = ByCode
	}
}
