package judge

import (
	"debug/elf"
	"errors"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// ErrReading is the reason why an Offsetted number (see package dialect) is not located.
var ErrReading = errors.New("the number may be an address or an offset: the calls in the file fit both readings, or neither")

// A reading is a possible meaning of a module's Offsetted numbers.
type reading uint8

const (
	asVaddr      reading = iota // Android 11 and newer
	asFileOffset                // Android 10
	asMapOffset                 // Android 9 and older: offset in the executable mapping
	readings
)

// A weighing counts the frames of a module for and against a reading.
type weighing struct {
	calls  int    // frames after a call
	failed int    // frames that follow no call, or are outside the code
	addr   uint64 // address in the file of the last frame, with this reading
}

// agrees reports whether more frames support the reading than contradict it: a single frame, such
// as one that a signal interrupted, may follow no call.
func (w *weighing) agrees() bool { return w.calls > w.failed }

// read returns the address in the file for an Offsetted number. ok is false if the address is
// outside of executable segments.
func (m *Image) read(value uint64, as reading) (addr uint64, ok bool) {
	if as == asFileOffset {
		return m.atOffset(value)
	}
	for _, s := range m.Segments {
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0 {
			continue
		}
		if addr = value; as == asMapOffset {
			addr += s.Addr &^ (pageSize - 1)
		}
		if addr-s.Addr < s.MemSize {
			return addr, true
		}
		if as == asMapOffset {
			break
		}
	}
	return 0, false
}

// read chooses the reading of each module's Offsetted numbers.
func (t *Trace) read(frames []*Frame) {
	changed := make(map[*verdict]bool)
	for _, f := range frames {
		// Only consecutive numbers show that no frame is missing before f. If a trampoline is
		// missing there, f's address follows no call.
		called := f.Number > 0 && f.Number == t.number+1
		t.number = f.Number
		v := t.verdictOf(f)
		if f.Kind != dialect.Offsetted || v == nil || v.image.Err != nil {
			continue
		}
		if !v.image.visit(func(file *object.File) { v.weigh(file, f, called) }) {
			v.unseen = true
		}
		changed[v] = true
	}
	for v := range changed {
		v.choose()
		t.corrected = t.corrected || v.reading != asVaddr
	}
}

// weigh compares f with the file of its module, for each reading. called is set if the address of f
// must follow a call.
func (v *verdict) weigh(file *object.File, f *Frame, called bool) {
	code := Image{File: file}
	for as := range readings {
		w := &v.weighed[as]
		addr, ok := v.image.read(f.Value, as)
		if w.addr = addr; !ok {
			w.failed++
		} else if yes, known := code.followsCall(addr, f.Call); known && yes && f.Number != 0 {
			w.calls++
		} else if known && called {
			w.failed++
		}
	}
}

// choose sets the reading. It keeps asVaddr, the meaning in newer versions, if no frame contradicts
// asVaddr, or if more frames support it than contradict it. Another reading could then replace
// right addresses by wrong ones.
func (v *verdict) choose() {
	v.reading, v.unread = asVaddr, false
	if w := &v.weighed[asVaddr]; w.failed == 0 || w.agrees() {
		return
	}
	v.unread = true
	file, from := &v.weighed[asFileOffset], &v.weighed[asMapOffset]
	switch {
	case file.agrees() && from.agrees() && file.addr != from.addr:
	case file.agrees():
		v.reading, v.unread = asFileOffset, false
	case from.agrees():
		v.reading, v.unread = asMapOffset, false
	}
}

// readAddress returns the address in the file of an Offsetted frame.
func (v *verdict) readAddress(f *Frame, corrected bool) (uint64, error) {
	addr, ok := v.image.read(f.Value, v.reading)
	switch {
	case v.unread || v.unseen:
		return 0, ErrReading
	case !ok:
		return 0, ErrNotCode
	case !corrected || v.weighed[v.reading].calls > 0:
		return addr, nil
	}
	// No frame of this module shows how its numbers must be read, but numbers of other modules are
	// offsets. All readings must then give the same address.
	for as := range readings {
		if other, ok := v.image.read(f.Value, as); ok && other != addr {
			return 0, ErrReading
		}
	}
	return addr, nil
}

// trampolineNames are the symbols of signal trampolines in glibc and musl.
var trampolineNames = []string{"__restore_rt", "__restore"}

// visited reports whether the file has the code or the symbol of a signal trampoline at addr. A
// file without code has only the symbol.
func (m *Image) visited(addr uint64) (trampoline bool) {
	m.visit(func(file *object.File) {
		trampoline = (&Image{File: file}).isTrampoline(addr)
		for _, name := range trampolineNames {
			for _, s := range file.SymbolsNamed(name) {
				trampoline = trampoline || s.Addr == addr
			}
		}
	})
	return trampoline
}

// visit calls examine with the open file, and reports whether it was open and could be read.
func (m *Image) visit(examine Examination) (done bool) {
	err := object.Guard(func() {
		if m.Visit == nil {
			examine(m.File)
			done = true
			return
		}
		m.Visit(func(file *object.File) {
			examine(file)
			done = true
		})
	})
	return done && err == nil
}
