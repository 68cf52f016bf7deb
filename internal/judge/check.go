package judge

import (
	"bytes"
	"debug/elf"

	"github.com/symfilter/symfilter/internal/dialect"
)

// A check compares one frame with the file of its module.
type check struct {
	of         *verdict
	here       *Evidence // of the frame's stack
	stack      int       // the number of that stack
	returns    uint64    // the return address, if a call is before it; otherwise 0
	corrected  bool      // see Trace
	called     bool      // a call must be before the address, because the frame before is not a trampoline
	exact      bool      // the frame was interrupted by a signal
	mayFault   bool      // the frame before may be a trampoline, whose file is not here or not proved
	noLibrary  bool      // that file is not here
	faults     bool      // so the address, which no call is before, is exact if the file is proved
	trampoline bool      // its code is that to which a signal handler returns
	strays     bool      // the address is outside the code, as the last frame of an unwinder that follows frame pointers may be
	mixed      bool      // frames of several processes may be mixed
	addr       uint64    // as the file has it, not adjusted
	lookup     uint64
	verified   string
	err        error

	linked  bool // the call to the frame leads to its function, or its own call to that of the frame before
	astray  bool // one of these calls leads to another function
	beside  bool // such a call is there, in the same file
	run     run
	runs    bool // run is set
	refuted bool // for all of run
}

// compare checks f, and reports whether the next frame of its stack was interrupted by a signal.
func (c *check) compare(t *Trace, f *Frame) (signal bool) {
	m := c.of.image
	if f.Kernel != nil {
		c.runInKernel(f)
		return false
	}
	derived := false // the address is computed from the symbol, so that the symbol proves nothing
	if f.Kind == dialect.Offsetted {
		c.addr, c.err = c.of.readAddress(f, c.corrected)
	} else {
		c.addr, derived, c.err = c.of.address(f)
	}
	if c.err != nil {
		if c.err == ErrSymbol {
			c.of.refuted = ErrSymbol
		}
		return false
	}
	if m.File != nil && m.File.Machine == elf.EM_ARM && f.Symbol.Name == "" {
		c.addr &^= 1 // the bit of a call of Thumb code
	}
	if f.Machine != 0 && m.File != nil && m.File.Machine != f.Machine {
		c.err = ErrNotCode
		return false
	}
	call := f.Call
	if m.File != nil && f.Dialect.Subtracts == dialect.LessESPRust {
		call = c.espRust()
	}
	if m.File != nil && m.File.Machine == elf.EM_AVR {
		if call = c.onAVR(call); c.err != nil {
			return false
		}
	}
	if m.File != nil && m.File.Machine == elf.EM_RISCV && f.Dialect.Subtracts == dialect.LessESPIDF {
		call = c.espOnRISCV(call)
	}
	if m.File == nil { // the build ID identifies the file
		if c.lookup = c.addr; call == dialect.Return && !c.exact && f.Number != 0 {
			c.lookup--
		}
		return call != dialect.Adjusted && m.Visit != nil && m.visited(c.addr)
	}
	signal = call != dialect.Adjusted && m.isTrampoline(c.addr)
	if c.exact && c.mixed {
		if yes, _ := m.followsCall(c.addr, dialect.Return); yes {
			c.err = ErrSeveral
			return signal
		}
	}
	if c.trampoline = signal; signal {
		c.of.all.Trampolines++
		c.here.Trampolines++
	}
	if c.exact || signal {
		call = dialect.Exact
	}
	yes, known := m.followsCall(c.addr, call)
	if call == dialect.Either {
		call = dialect.Exact
		if yes {
			call = dialect.Return
		}
	}
	c.lookup = c.addr
	if call == dialect.Return {
		c.lookup = m.File.InCall(c.addr)
	}
	if call == dialect.System && m.followsSystemCall(c.addr) {
		c.lookup--
	}
	if f.Program && !m.isCode(c.lookup) {
		c.err = ErrNoModule // the address may be in any module
		return false
	}
	if !m.isCode(c.lookup) {
		c.err = ErrNotCode
		if c.strays = f.Dialect.FramePointers && f.ID.IsZero() && f.Prefix.IsZero(); !f.Optional && !c.strays {
			c.fail()
		}
		return false
	}
	if c.listed(f); c.err != nil {
		return signal
	}
	if f.Symbol.Inside {
		if all := m.symbols(f.Symbol.Name); len(all) > 0 && !isInside(all, c.lookup) && !isInside(all, c.addr) {
			c.err, c.of.refuted = ErrSymbol, ErrSymbol
			return false
		} else if len(all) > 0 {
			c.weigh(nameBits(all))
		}
	} else if same, has := m.symbolAt(f.Symbol, c.addr); has && !derived {
		if !same {
			c.err, c.of.refuted = ErrSymbol, ErrSymbol
			return false
		}
		c.agree()
		c.verified = BySymbol
	}
	if call == dialect.Exact || call == dialect.System || call == dialect.Adjusted && !yes && (f.Number == 0 || c.of.identifies(f)) || !known {
		// the first frame may be the place of a fault
		if f.Dialect.FramePointers && f.Number == 0 && c.verified == "" && !c.of.identifies(f) && t.isWithinInstruction(m.File, c.addr) && t.isWithinInstruction(m.File, c.addr+1) {
			c.err = ErrWithin
			c.contradict()
		}
		return signal
	}
	if !yes {
		// A symbol whose distance is only right modulo the page size proves less than one at the very
		// distance: linkers align functions, so one in 256 other builds has it there by chance.
		if c.called && !m.Forced && (c.verified == "" || f.Kind == dialect.Runtime && !m.Fixed) {
			if c.mayFault && c.verified == "" && c.noLibrary {
				c.faults, c.lookup = true, c.addr
				return signal
			}
			if c.err = ErrFault; !c.mayFault {
				c.err = ErrCall
				c.contradict()
			}
		}
		return signal
	}
	c.returns = m.callEnd(c.addr, f.Call)
	addOnce(&c.of.all.Called, c.addr)
	addOnce(&c.here.Called, c.addr)
	if c.verified == "" {
		c.verified = ByCall
	}
	return signal
}

// agree notes that the file has the frame's symbol, or its code, where the log has it.
func (c *check) agree() {
	c.of.all.Symbols++
	c.here.Symbols++
}

// weigh adds the bits of a fact, of which only the greatest of a file counts.
func (c *check) weigh(bits int) {
	c.of.all.Linked = max(c.of.all.Linked, bits)
	c.here.Linked = max(c.here.Linked, bits)
}

// stray notes that the file has no code at the address. Once, the last frame of a stack counts neither
// for nor against it: the calls before the other frames have to prove the file.
func (c *check) stray(last bool) {
	if !last || c.of.all.Stray != 0 && c.of.all.Stray != c.addr {
		c.fail()
		return
	}
	c.of.all.Stray = c.addr
}

// fail notes that the file has no call before the address, or no code there.
func (c *check) fail() {
	addOnce(&c.of.all.Failed, c.addr)
	addOnce(&c.here.Failed, c.addr)
}

// agreesAlone reports whether the file has the frame's own symbol or code, whatever the other
// frames show.
func (c *check) agreesAlone() bool {
	return c.verified == BySymbol || c.verified == ByCode || c.trampoline
}

// contradict notes that the file has other code at the address.
func (c *check) contradict() {
	c.fail()
	c.here.Contradicted++
}

// located reports whether the code of the frame was found.
func (c *check) located() bool { return c.of != nil && c.of.image.Err == nil && c.err == nil }

// identifies reports whether the file has the build ID that the log has for f.
func (v *verdict) identifies(f *Frame) bool {
	return !f.ID.IsZero() && v.image.ID == f.ID || f.Prefix.Len() >= sureID
}

// conclude sets the Place of f.
func (c *check) conclude(f *Frame) {
	p := &f.Place
	byID := !f.ID.IsZero() || f.Prefix.Len() >= sureID
	switch v := c.of; {
	case p.Verified != "" || p.Err != nil:
	case v == nil && f.isOfProgram():
		p.Err = ErrNoProgram
	case v == nil:
		p.Err = ErrNoModule
		if f.NoModule != nil {
			p.Err = f.NoModule
		}
	case v.image.Err != nil:
		*p = Place{Image: v.image, Err: v.image.Err}
	case v.image.names.over && !byID:
		*p = Place{Image: v.image, Err: ErrBudget}
	case v.image.File != nil && !bytes.HasPrefix(v.image.ID.Bytes(), f.Prefix.Bytes()):
		*p = Place{Image: v.image, Err: ErrOtherID}
	case c.err == ErrNotCode && v.refuted == nil && v.all.proves(v.image) && !v.all.refutes(v.image) && !c.here.refutes(v.image):
		*p = Place{Image: v.image, Err: ErrStray} // such as garbage of an unwinder that follows frame pointers
	case c.err != nil:
		*p = Place{Image: v.image, Err: c.err}
	case c.faults && !byID && !v.image.Given && !c.here.proves(v.image):
		*p = Place{Image: v.image, Err: ErrFault}
	case byID && (v.image.File == nil || v.image.ID == f.ID || f.Prefix.Len() >= sureID):
		*p = Place{Image: v.image, Addr: c.lookup, Verified: ByBuildID}
	case IsOtherProgram(v.refuted):
		*p = Place{Image: v.image, Err: v.refuted}
	case c.refuted, (v.refuted != nil || v.all.refutes(v.image) || c.here.refutes(v.image)) && !v.image.Forced:
		*p = Place{Image: v.image, Err: ErrRefuted}
		if v.refuted == ErrCode {
			p.Err = ErrCode // the reports have the last reason
		}
	case v.image.Guessed && !v.proved:
		*p = Place{Image: v.image, Err: ErrTitle}
	case v.image.ByName && !v.proved:
		*p = Place{Image: v.image, Err: ErrUnproven}
	case v.image.Younger && !c.agreesAlone() && (!c.here.placesInYounger() || !c.linked && c.verified == ""):
		*p = Place{Image: v.image, Err: ErrYounger}
	case !c.linked && !f.Footnote && (c.astray || c.beside && len(v.all.Called) < unlinkedCalls) && !c.agreesAlone() && !v.image.Given:
		// Footnotes have each address of many stacks once: the next one is no caller.
		*p = Place{Image: v.image, Err: ErrUnproven}
	case c.verified != "" && (c.verified != ByCall || v.proved || v.image.Given):
		*p = Place{Image: v.image, Addr: c.lookup, Verified: c.verified}
	case v.proved || v.image.Given:
		*p = Place{Image: v.image, Addr: c.lookup, Verified: ByPath}
	default:
		*p = Place{Image: v.image, Err: ErrUnproven}
	}
}
