package judge

import (
	"bytes"
	"debug/elf"

	"github.com/symfilter/symfilter/internal/dialect"
)

// A check compares one frame with the file of its module.
type check struct {
	of        *verdict
	here      *Evidence // evidence of the frame's stack
	stack     int       // number of that stack
	returns   uint64    // the return address if a call precedes it; 0 if not
	corrected bool      // see Trace.corrected
	// an address without a call before it is a failure; false for an Offsetted frame if the log may
	// lack a trampoline before it
	called bool
	exact  bool // the frame was interrupted by a signal
	// the previous frame may be a trampoline; its file is missing or not proved
	mayFault  bool
	noLibrary bool // the file of that trampoline is missing
	// mayFault and noLibrary are set, and the address follows no call; if the file is proved, the
	// address is exact
	faults     bool
	trampoline bool // the frame is in a signal trampoline, to which a signal handler returns
	// the address is outside the code, which is normal for the last frame of a frame-pointer
	// unwinder
	strays   bool
	mixed    bool   // frames of several processes may be mixed
	addr     uint64 // unadjusted address in the file
	lookup   uint64
	verified string
	err      error

	// kind of the address according to the machine and the neighbouring frames; refines f.Call
	call    dialect.Call
	derived bool // the address was computed from the symbol, which therefore proves nothing
	follows bool // the address follows a call
	known   bool // follows is known
	signal  bool // the next frame was interrupted by a signal

	// the caller's call leads to the function of this frame, or this frame's call to the function
	// of the called frame
	linked  bool
	astray  bool // a call between this frame and a neighbour leads to another function
	unclear bool // a direct call between this frame and a neighbour may lead to another function
	// a neighbouring frame is in the same x86-64 file, and the caller's address follows a call
	beside  bool
	run     run
	runs    bool // run is set
	refuted bool // all frames of run are refuted
}

// comparison lists the steps of compare in order. A step returns false to end the comparison.
var comparison = []func(c *check, t *Trace, f *Frame) bool{
	(*check).findAddress,
	(*check).adjustToMachine,
	(*check).compareWithoutFile,
	(*check).findSignal,
	(*check).findLookup,
	(*check).isInCode,
	(*check).compareListing,
	(*check).compareSymbol,
	(*check).compareCall,
}

// compare checks f, step by step. It reports whether a signal has interrupted the next frame of the
// stack.
func (c *check) compare(t *Trace, f *Frame) (interrupts bool) {
	if f.Kernel != nil {
		c.runInKernel(f)
		return false
	}
	for _, step := range comparison {
		if !step(c, t, f) {
			break
		}
	}
	return c.signal
}

func (c *check) findAddress(_ *Trace, f *Frame) bool {
	if f.Kind == dialect.Offsetted {
		c.addr, c.err = c.of.readAddress(f, c.corrected)
	} else {
		c.addr, c.derived, c.err = c.of.address(f)
	}
	if c.err != nil {
		if c.err == ErrSymbol {
			c.of.refuted = ErrSymbol
		}
		return false
	}
	file := c.of.image.File
	if file == nil {
		return true
	}
	if file.Machine == elf.EM_ARM && f.Symbol.Name == "" {
		c.addr &^= 1 // bit 0 marks Thumb code
	}
	if f.Machine != 0 && file.Machine != f.Machine {
		c.err = ErrNotCode
		return false
	}
	return true
}

// adjustToMachine adjusts the kind of the address to the file's machine.
func (c *check) adjustToMachine(_ *Trace, f *Frame) bool {
	c.call = f.Call
	file := c.of.image.File
	if file == nil {
		return true
	}
	if f.Dialect.Subtracts == dialect.LessESPRust {
		c.call = c.espRust()
	}
	switch {
	case file.Machine == elf.EM_AVR:
		c.call = c.onAVR(c.call)
	case file.Machine == elf.EM_RISCV && f.Dialect.Subtracts == dialect.LessESPIDF:
		c.call = c.espOnRISCV(c.call)
	}
	return c.err == nil
}

// compareWithoutFile ends the comparison if no file is open. The build ID in the log then
// identifies the file, so it sets only the address to look up and the signal.
func (c *check) compareWithoutFile(_ *Trace, f *Frame) bool {
	m := c.of.image
	if m.File != nil {
		return true
	}
	if c.lookup = c.addr; c.call == dialect.Return && !c.exact && f.Number != 0 {
		c.lookup--
	}
	c.signal = c.call != dialect.Adjusted && m.Visit != nil && m.visited(c.addr)
	return false
}

func (c *check) findSignal(_ *Trace, _ *Frame) bool {
	m := c.of.image
	c.signal = c.call != dialect.Adjusted && m.isTrampoline(c.addr)
	if c.exact && c.mixed {
		if yes, _ := m.followsCall(c.addr, dialect.Return); yes {
			c.err = ErrSeveral
			return false
		}
	}
	if c.trampoline = c.signal; c.signal {
		c.of.all.Trampolines++
		c.here.Trampolines++
	}
	if c.exact || c.signal {
		c.call = dialect.Exact
	}
	return true
}

// findLookup sets the address to look up: within the call for a return address.
func (c *check) findLookup(_ *Trace, _ *Frame) bool {
	m := c.of.image
	c.follows, c.known = m.followsCall(c.addr, c.call)
	if c.call == dialect.Either {
		c.call = dialect.Exact
		if c.follows {
			c.call = dialect.Return
		}
	}
	c.lookup = c.addr
	switch {
	case c.call == dialect.Return:
		c.lookup = m.File.InCall(c.addr)
	case c.call == dialect.System && m.followsSystemCall(c.addr):
		c.lookup--
	}
	return true
}

// isInCode ends the comparison of an address outside the code of the file.
func (c *check) isInCode(_ *Trace, f *Frame) bool {
	if c.of.image.isCode(c.lookup) {
		return true
	}
	c.signal = false
	if f.Program {
		c.err = ErrNoModule // the address may be in any module
		return false
	}
	c.err = ErrNotCode
	c.strays = f.Dialect.FramePointers && f.ID.IsZero() && f.Prefix.IsZero()
	if !f.Optional && !c.strays {
		c.fail()
	}
	return false
}

func (c *check) compareListing(_ *Trace, f *Frame) bool {
	c.listed(f)
	return c.err == nil
}

func (c *check) compareSymbol(_ *Trace, f *Frame) bool {
	m := c.of.image
	var differs bool
	if f.Symbol.Inside {
		all := m.symbols(f.Symbol.Name)
		differs = len(all) > 0 && !isInside(all, c.lookup) && !isInside(all, c.addr)
		if len(all) > 0 && !differs {
			c.weigh(nameBits(all))
		}
	} else if equal, has := m.symbolAt(f.Symbol, c.addr); has && !c.derived {
		if differs = !equal; equal {
			c.agree()
			c.verified = BySymbol
		}
	}
	if differs {
		c.err, c.of.refuted, c.signal = ErrSymbol, ErrSymbol, false
	}
	return !differs
}

func (c *check) compareCall(t *Trace, f *Frame) bool {
	switch {
	case c.needsNoCall(f):
		// the first frame may be the location of a fault
		if f.Dialect.FramePointers && f.Number == 0 && c.verified == "" && !c.of.identifies(f) && t.isWithinInstructions(c.of.image.File, c.addr) {
			c.err = ErrWithin
			c.contradict()
		}
	case c.follows:
		c.returns = c.of.image.callEnd(c.addr, f.Call)
		addOnce(&c.of.all.Called, c.addr)
		addOnce(&c.here.Called, c.addr)
		if c.verified == "" {
			c.verified = ByCall
		}
	default:
		c.missCall(f)
	}
	return false
}

// needsNoCall reports whether f's address is valid without a call before it. The address may be
// exact, the build ID may identify the file, or calls may not be recognizable.
func (c *check) needsNoCall(f *Frame) bool {
	switch c.call {
	case dialect.Exact, dialect.System:
		return true
	case dialect.Adjusted:
		return !c.known || !c.follows && (f.Number == 0 || c.of.identifies(f))
	}
	return !c.known
}

// missCall records that the return address of f follows no call, unless f needs no call. If the
// previous frame may be a signal trampoline whose file is missing, missCall sets c.faults instead
// of an error.
func (c *check) missCall(f *Frame) {
	m := c.of.image
	// A distance from a symbol that is right only modulo the page size proves less than an exact
	// distance. Linkers align functions, so one in 256 other builds also has the symbol there.
	if !c.called || m.Forced || c.verified != "" && (f.Kind != dialect.Runtime || m.Fixed) {
		return
	}
	switch {
	case c.mayFault && c.verified == "" && c.noLibrary:
		c.faults, c.lookup = true, c.addr
	case c.mayFault:
		c.err = ErrFault
	default:
		c.err = ErrCall
		c.contradict()
	}
}

// agree records that the file has the frame's symbol or code at the logged address.
func (c *check) agree() {
	c.of.all.Symbols++
	c.here.Symbols++
}

// weigh records a fact with this weight in bits. Of all such facts about a file, only the heaviest
// counts.
func (c *check) weigh(bits int) {
	c.of.all.Linked = max(c.of.all.Linked, bits)
	c.here.Linked = max(c.here.Linked, bits)
}

// stray records that the file has no code at the address of a frame. In the last frame of a stack,
// this is a failure only if an earlier stack has ended at a different address outside the code. If
// it is not a failure, calls before the other frames still have to prove the file.
func (c *check) stray(last bool) {
	if !last || c.of.all.Stray != 0 && c.of.all.Stray != c.addr {
		c.fail()
		return
	}
	c.of.all.Stray = c.addr
}

// fail records the frame's address as a failure: it follows no call, or is outside the file's code.
func (c *check) fail() {
	addOnce(&c.of.all.Failed, c.addr)
	addOnce(&c.here.Failed, c.addr)
}

// agreesAlone reports whether the file has the frame's own symbol, code or signal trampoline. This
// proves the file even if other frames prove nothing.
func (c *check) agreesAlone() bool {
	return c.verified == BySymbol || c.verified == ByCode || c.trampoline
}

// contradict records, as a failure, that the file has different code at the address.
func (c *check) contradict() {
	c.fail()
	c.here.Contradicted++
}

// located reports whether the frame has a file, and no check has failed.
func (c *check) located() bool { return c.of != nil && c.of.image.Err == nil && c.err == nil }

// identifies reports whether the log has the build ID of the file, or at least its first sureID
// bytes.
func (v *verdict) identifies(f *Frame) bool {
	return !f.ID.IsZero() && v.image.ID == f.ID || f.Prefix.Len() >= sureID
}

func (c *check) conclude(f *Frame) {
	p := &f.Place
	switch {
	case p.Verified != "" || p.Err != nil:
		return
	case c.of == nil:
		p.Err = withoutModule(f)
		return
	}
	p.Image = c.of.image
	if p.Err = c.failure(f); p.Err != nil {
		return
	}
	verified := ByBuildID
	switch {
	case f.live != nil && c.here.doubts():
		p.Err = ErrRefuted // the process had another file there when it printed the stack
	case f.live != nil:
		verified = ByProcess
	case !c.of.isBuildOf(f):
		verified, p.Err = c.proof(f)
	}
	if p.Err == nil {
		p.Addr, p.Verified = c.lookup, verified
	}
}

// withoutModule returns the reason why f, which has no module, is not located.
func withoutModule(f *Frame) error {
	switch {
	case f.isOfProgram():
		return ErrNoProgram
	case f.NoModule != nil:
		return f.NoModule
	}
	return ErrNoModule
}

// hasID reports whether the log has the build ID of f's module, or at least its first sureID bytes.
func (f *Frame) hasID() bool { return !f.ID.IsZero() || f.Prefix.Len() >= sureID }

// isBuildOf reports whether f's build ID in the log identifies v's file.
func (v *verdict) isBuildOf(f *Frame) bool {
	return f.hasID() && (v.image.File == nil || v.image.ID == f.ID || f.Prefix.Len() >= sureID)
}

// failure returns the reason why f is not located, or nil. It does not check that the file is
// proved: see proof.
func (c *check) failure(f *Frame) error {
	v := c.of
	switch {
	case v.image.Err != nil:
		return v.image.Err
	case v.image.names.over && !f.hasID():
		return ErrBudget
	case v.image.File != nil && !bytes.HasPrefix(v.image.ID.Bytes(), f.Prefix.Bytes()):
		return ErrOtherID
	case c.err == ErrNotCode && v.refuted == nil && v.all.proves(v.image) && !v.all.refutes(v.image) && !c.here.refutes(v.image):
		return ErrStray // for example garbage of a frame-pointer unwinder
	case c.err != nil:
		return c.err
	case c.faults && !f.hasID() && !v.image.Given && !c.here.proves(v.image):
		return ErrFault
	}
	return nil
}

// proof returns the proof of f's location if the log has no build ID, or the reason why there is no
// proof.
func (c *check) proof(f *Frame) (verified string, err error) {
	v := c.of
	switch {
	case IsOtherProgram(v.refuted):
		return "", v.refuted
	case c.isRefuted() && v.refuted == ErrCode:
		return "", ErrCode // more specific than ErrRefuted
	case c.isRefuted():
		return "", ErrRefuted
	case v.image.Guessed && !v.proved:
		return "", ErrTitle
	case v.image.ByName && !v.proved:
		return "", ErrUnproven
	case c.isTooYoung():
		return "", ErrYounger
	case c.isUnconnected(f):
		return "", ErrUnproven
	case c.verified != "" && (c.verified != ByCall || v.proved || v.image.Given):
		return c.verified, nil
	case v.proved || v.image.Given:
		return ByPath, nil
	}
	return "", ErrUnproven
}

// isRefuted reports whether the evidence shows that the file did not run.
func (c *check) isRefuted() bool {
	v := c.of
	return c.refuted || (v.refuted != nil || v.all.refutes(v.image) || c.here.refutes(v.image)) && !v.image.Forced
}

// isTooYoung reports whether the file was changed after the log was written, and the stack has too
// little evidence for such a file.
func (c *check) isTooYoung() bool {
	return c.of.image.Younger && !c.agreesAlone() && (!c.here.placesInYounger() || !c.linked && c.verified == "")
}

// isUnconnected reports whether no call links f to a neighbouring frame, so that the file is in
// doubt. It returns false if f alone proves the file. It also returns false for frames in
// footnotes: footnotes list each address once, so the next address is not the caller.
//
// A file that symfilter found is in doubt if a call between f and a neighbour leads to another
// function. It is also in doubt if a call should link f to a neighbour, and too few other frames
// follow calls: see unlinkedCalls. An operator's file is in doubt only if its base was inferred,
// and a call between f and a neighbour leads, or may lead, to another function. Another build may
// have the same code at the beginning and end of the file.
func (c *check) isUnconnected(f *Frame) bool {
	v, needed := c.of, unlinkedCalls
	if c.verified == "" {
		needed = unlinkedFaultCalls
	}
	if c.linked || f.Footnote || c.agreesAlone() {
		return false
	}
	if v.image.Given {
		return v.inferred && (c.astray || c.unclear)
	}
	return c.astray || c.beside && len(v.all.Called) < needed
}
