package dialect

import (
	"bytes"
	"errors"
	"slices"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

// What an answer rests on: the values of Place.Verified.
const (
	ByBuildID = "build-id" // the log has the build ID of the file
	BySymbol  = "symbol"   // the file has the symbol of the log at that distance
	ByCall    = "call"     // in the file, a call is before the return address
	ByCode    = "code"     // the log lists the code around the address, and the file has it there
	ByPath    = "path"     // the frame cannot be checked; another frame of the trace has proved the file
)

// The reasons why a frame is not located.
var (
	ErrOtherID   = errors.New("the file has another build ID than the list of modules in the log")
	ErrNoModule  = errors.New("the trace does not name the module of the address; log /proc/self/maps with it, or give --image FILE for a program at a fixed address (not PIE), --image FILE@BASE for another one")
	ErrNoProgram = errors.New("the trace does not name the file of the program, which the address is in; --image FILE names it")
	ErrNoBias    = errors.New("the address is one of the process, and neither maps nor other frames show where the module was loaded; log /proc/self/maps, or give --image FILE@BASE")
	ErrNotCode   = errors.New("the file has no code at this place: it is not the file that ran")
	ErrSymbol    = errors.New("the file has the symbol at another place: it is not the file that ran")
	ErrCall      = errors.New("in the file, no call is before this return address: it is not the file that ran")
	ErrCode      = errors.New("the file has other code at this place than the log lists: it is not the file that ran")
	ErrRefuted   = errors.New("other frames of the trace show that it is not the file that ran")
	ErrUnproven  = errors.New("no frame of the trace proves that it is the file that ran; --image NAME=FILE names it")
	ErrTitle     = errors.New("the frame names the program as it was called, not its file; --image NAME=FILE names it")
	ErrSeveral   = errors.New("frames of several processes are mixed, so that it is not known which of them a signal has interrupted")
	ErrManySym   = errors.New("the file has several symbols of this name")
	ErrNoSym     = errors.New("the file has no symbol of this name")
	ErrNoLib     = errors.New("no file of this name is in the program's folder, or in one of the system's; --image NAME=FILE names it")
)

// A Place is where a frame is.
type Place struct {
	// Image is the file, nil if the build ID of the frame identifies it. If Err is not nil, it is
	// the file that was refused, if there is one.
	Image *Image

	// Addr is the address to look up, as the file has it: within the call for a return address.
	Addr     uint64
	Verified string // what the place rests on
	Err      error  // why the frame is not located; nil if it is
}

// A Trace judges the frames of one trace. It keeps what was found of its modules for the frames to
// come.
type Trace struct {
	// Open returns the file for the module of a frame, never nil. It is called once for a module.
	Open func(f *Frame) *Image

	// Named returns the files of this machine with a name without folders, in any folder that is
	// searched. Nil: none.
	Named func(name string) []*Image

	// Unnamed returns the files in which the address of a frame may be that has no module: those that
	// the operator names, and those that the log names beside its frames. Nil: there are none.
	Unnamed func() []*Image

	// Demangle returns the name that programs show for a mangled one. It may be nil.
	Demangle func(name string) string

	// Complete returns the build ID that begins with these bytes, zero if none or several are known.
	// It may be nil.
	Complete  func(prefix buildid.ID) buildid.ID
	completed map[buildid.ID]buildid.ID

	modules map[moduleKey]*verdict
	worked  int // work of the search for biases

	apart bool // its frames tell processes apart

	number    int             // of the last frame
	signals   map[uint64]bool // the processes whose last frame was a signal's trampoline
	corrected bool            // the numbers of a module are not read as addresses: see Trace.read
}

// A moduleKey identifies a module of a process.
type moduleKey struct {
	process uint64
	name    string // or the build ID
}

const maxModules = 1024 // modules of a trace; further ones stay unresolved

// guessedCalls is the number of return addresses with a call before them that prove a file of which
// only the name is known. Of addresses in another file, at most one of 40 has a call before it.
const guessedCalls = 4

// A verdict is what the frames of a trace say of one module.
type verdict struct {
	name    string     // of the module in the frame that named it first
	id      buildid.ID // zero if it is not known
	image   *Image
	bias    uint64
	biased  bool // bias is known
	moved   bool // frames show different biases: several processes write to the log
	proved  bool
	refuted error
	symbols int      // frames that agree with the file's symbols
	calls   int      // frames with a call before them
	failed  []uint64 // addresses without one, at most maxFailures

	seen  []sighting // what is known of the bias as long as it is not known
	tried int        // number of them at the last search
	usual uint64     // a bias that is likely; 0 if there is none

	weighed [readings]weighing // of the frames of the kind Offsetted
	reading reading            // of these
	unread  bool               // no reading agrees with the file, or several do
	unseen  bool               // the file could not be read
}

// fail notes that the file has no call before addr, or no code there.
func (v *verdict) fail(addr uint64) {
	if len(v.failed) < maxFailures && !slices.Contains(v.failed, addr) {
		v.failed = append(v.failed, addr)
	}
}

// Judge locates the frames, which are in the order of the log, and sets the Place of each. facts is
// what the log says of the process.
func (t *Trace) Judge(frames []*Frame, facts *Facts) {
	for _, f := range frames {
		t.apart = t.apart || f.Process != 0
		f.Place = Place{}
		t.assign(f, facts)
		if f.Place.Err = f.Unread; f.Place.Err == nil {
			f.Place.Err = notELF(f.Module)
		}
		if f.Place.Err != nil {
			continue
		}
		f.PlaceByID()
		t.crashed(f)
	}
	for _, f := range frames {
		t.findBias(f, facts)
	}
	t.searchBiases(frames)
	t.read(frames)
	of := make([]*verdict, len(frames))
	for i, f := range frames {
		of[i] = t.verdictOf(f)
	}
	t.placeUnnamed(frames, of)
	checks := make([]check, len(frames))
	mixed := false
	for _, v := range of {
		mixed = mixed || v != nil && v.moved
	}
	for i, f := range frames {
		c := &checks[i]
		c.corrected = t.corrected
		c.of = of[i]
		if c.of == nil || c.of.image.Err != nil {
			t.setSignal(f, f.Symbol.Name == "__restore_rt") // the trampoline of x86-64, by its name in glibc
			continue
		}
		c.exact, c.mixed = t.signals[f.Process] && f.Number != 0, mixed
		c.called = f.Kind != Offsetted || i > 0 && f.Number == frames[i-1].Number+1 && checks[i-1].located()
		signal := false
		if fault := object.Guard(func() { signal = c.run(f) }); fault != nil {
			c.err, signal = fault, false
		}
		t.setSignal(f, signal)
	}
	for i := range checks {
		if v := checks[i].of; v != nil {
			v.proved = v.symbols+v.calls > 0
			if v.image.Guessed {
				v.proved = v.symbols > 0 || v.calls >= guessedCalls
			}
			if len(v.failed) >= maxFailures || len(v.failed) > 0 && v.image.Guessed {
				v.refuted = ErrCall
			}
		}
	}
	for i, f := range frames {
		checks[i].conclude(f)
	}
}

// setSignal notes whether the frame after f is the one that a signal has interrupted. It may be judged
// later than f.
func (t *Trace) setSignal(f *Frame, signal bool) {
	switch {
	case !signal:
		delete(t.signals, f.Process)
	case t.signals == nil:
		t.signals = map[uint64]bool{f.Process: true}
	case len(t.signals) < maxModules:
		t.signals[f.Process] = true
	}
}

// EndStack ends the stack of the last frame: the next one begins another stack.
func (t *Trace) EndStack() { clear(t.signals) }

// Lasts returns the number of lines after its last frame for which a trace is kept: longer if frames
// tell the processes apart that write to a log, as in reports of Valgrind, whose errors are far
// apart.
func (t *Trace) Lasts() int64 {
	if t.apart {
		return factLines
	}
	return windowLines
}

// Apart reports whether frames tell the processes apart that write to the log. Such a trace may be
// long: it has all errors of a process.
func (t *Trace) Apart() bool { return t.apart }

// PlaceByID sets the Place of f if its line alone locates it, by a build ID and an address of the
// file, and reports whether it does, or f is Named.
func (f *Frame) PlaceByID() bool {
	if f.Named {
		return true
	}
	if f.ID.IsZero() || f.Kind != Vaddr {
		return false
	}
	f.Place = Place{Addr: f.Value, Verified: ByBuildID}
	if f.Call == Return {
		f.Place.Addr--
	}
	return true
}

// assign sets what is known of the module of f from the lines around it.
func (t *Trace) assign(f *Frame, facts *Facts) {
	if f.Module == "" && f.Addr != 0 {
		if m, ok := facts.Covering(f.Addr); ok {
			f.Module = m.Path
		}
	}
	if f.Module == "" && f.Program {
		f.Module = facts.Main().Name
	}
	if f.ID.IsZero() && f.Module != "" {
		if m, ok := facts.Module(f.Module); ok {
			f.ID = m.ID
			t.complete(f, m.Prefix)
		}
	}
}

// complete sets the build ID of f's module, of which the log has the first bytes.
func (t *Trace) complete(f *Frame, prefix buildid.ID) {
	if prefix.IsZero() || !f.ID.IsZero() {
		return
	}
	id, known := t.completed[prefix]
	if !known && len(t.completed) < maxModules && t.Complete != nil {
		if t.completed == nil {
			t.completed = make(map[buildid.ID]buildid.ID)
		}
		id = t.Complete(prefix)
		t.completed[prefix] = id
	}
	if f.ID = id; id.IsZero() {
		f.prefix = prefix
	}
}

// verdictOf returns the verdict of f's module, nil if it has no module or there are too many.
func (t *Trace) verdictOf(f *Frame) *verdict {
	if f.Place.Verified != "" || f.Place.Err != nil || f.Module == "" && f.ID.IsZero() && !f.Program {
		return nil
	}
	key := moduleKey{f.Process, f.Module}
	if !f.ID.IsZero() {
		key.name = f.ID.String()
	}
	v := t.verdictFor(key, func() *Image {
		m := t.Open(f)
		if m.Err == nil && !f.prefix.IsZero() && !bytes.HasPrefix(m.ID.Bytes(), f.prefix.Bytes()) {
			return &Image{Path: m.Path, Err: ErrOtherID}
		}
		return m
	})
	if v != nil && v.name == "" {
		v.name, v.id = f.Module, f.ID
	}
	return v
}

// verdictFor returns the verdict with this key, and opens its file if it is new. It returns nil if
// there are too many.
func (t *Trace) verdictFor(key moduleKey, open func() *Image) *verdict {
	v := t.modules[key]
	if v == nil && len(t.modules) < maxModules {
		v = &verdict{image: open()}
		v.image.shown.demangle = t.Demangle
		if t.modules == nil {
			t.modules = make(map[moduleKey]*verdict)
		}
		t.modules[key] = v
	}
	return v
}

// findBias finds the load bias of f's module, if f shows it.
func (t *Trace) findBias(f *Frame, facts *Facts) {
	v := t.verdictOf(f)
	if v == nil || v.image.Err != nil || f.Addr == 0 {
		return
	}
	if v.biased {
		if !v.moved && f.Call != Adjusted {
			object.Guard(func() { v.moved = showsOther(v.image, f, v.bias) })
		}
		return
	}
	object.Guard(func() { v.bias, v.biased = biasBy(v.image, f, facts) })
}

// showsOther reports whether f shows another load bias.
func showsOther(m *Image, f *Frame, bias uint64) bool {
	if f.Symbol.Inside {
		return false
	}
	if addr, ok := numbered(m, f); ok {
		return f.Addr-addr != bias
	}
	syms := m.symbols(f.Symbol.Name)
	return len(syms) == 1 && f.Addr-(syms[0].Addr+uint64(f.Symbol.Offset)) != bias
}

// searchBiases looks for the biases of modules that no frame and no map shows. Where a library was
// loaded may show that a signal interrupted code of another module.
func (t *Trace) searchBiases(frames []*Frame) {
	for before := -1; ; {
		found, some := 0, false
		interrupted := false
		for _, f := range frames {
			v := t.verdictOf(f)
			if v == nil || v.image.File == nil || f.Kind != Runtime || f.Addr == 0 {
				interrupted = false
				continue
			}
			object.Guard(func() {
				if !v.biased {
					v.sight(f, interrupted && f.Number != 0)
					some = true
				}
				interrupted = v.biased && f.Call != Adjusted && v.image.isTrampoline(f.Addr-v.bias)
			})
		}
		if !some {
			return
		}
		for _, f := range frames {
			if v := t.verdictOf(f); v != nil && v.image.File != nil {
				work := maxBiasWork - t.worked
				object.Guard(func() { v.search(&work) })
				t.worked = maxBiasWork - work
				if v.biased {
					found++
				}
			}
		}
		if found == before || before >= 0 && found == 0 {
			return
		}
		before = found
	}
}

// biasBy returns the load bias of m that f, or a map around it, shows.
func biasBy(m *Image, f *Frame, facts *Facts) (bias uint64, ok bool) {
	if bias, ok = m.knownBias(); ok {
		return bias, true
	}
	if entry, found := facts.Covering(f.Addr); found && !entry.Deleted {
		if bias, ok = m.biasOfMap(&entry); ok {
			return bias, true
		}
	}
	if fact, found := facts.Module(f.Module); found && fact.HasBase {
		return fact.Base - m.lowest(), true
	} else if found && fact.Text != 0 {
		return m.biasOfText(fact.Text)
	}
	if addr, ok := numbered(m, f); ok {
		for _, less := range []uint64{0, 1, 2, 4} { // of a producer that subtracts from the number alone
			if bias = f.Addr - less - addr; bias%pageSize == 0 {
				return bias, true
			}
		}
		return 0, false
	}
	if f.Symbol.Inside {
		return 0, false
	}
	if syms := m.symbols(f.Symbol.Name); len(syms) == 1 {
		bias = f.Addr - (syms[0].Addr + uint64(f.Symbol.Offset))
		return bias, bias%pageSize == 0
	}
	return 0, false
}

// numbered returns the address, as the file has it, of a frame whose number does not depend on the
// load bias.
func numbered(m *Image, f *Frame) (addr uint64, ok bool) {
	switch f.Kind {
	case Vaddr:
		return f.Value, true
	case BaseOffset:
		if m.Fixed && f.Addr != 0 && f.Addr-f.Value == m.lowest() {
			return f.Addr, true // counted from the first page, as dladdr's callers do
		}
		if m.Fixed && f.Value >= m.lowest() {
			return f.Value, true // glibc gives the address itself: the bias of such a file is 0
		}
		return f.Value + m.lowest(), true
	case FileOffset:
		return m.atOffset(f.Value)
	case CodeOffset:
		return m.inCode(f.Value, f.Crash.Size)
	case FileOrRuntime:
		addr, ok = m.atOffset(f.Value)
		if m.Fixed && m.File != nil && m.isCode(f.Value) {
			return f.Value, !ok || addr == f.Value
		}
		return addr, ok
	}
	return 0, false
}

// A check is the check of one frame against the file of its module.
type check struct {
	of        *verdict
	corrected bool   // see Trace
	called    bool   // a call must be before the address: the frame before is known not to be a trampoline
	exact     bool   // the frame was interrupted by a signal
	mixed     bool   // frames of several processes may be mixed
	addr      uint64 // as the file has it, not adjusted
	lookup    uint64
	verified  string
	err       error
}

// run checks f, and reports whether the next frame of its stack was interrupted by a signal.
func (c *check) run(f *Frame) (signal bool) {
	m := c.of.image
	derived := false // the address comes from the symbol, which proves nothing then
	if f.Kind == Offsetted {
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
	call := f.Call
	if m.File == nil { // the build ID identifies the file
		if c.lookup = c.addr; call == Return && !c.exact && f.Number != 0 {
			c.lookup--
		}
		return call != Adjusted && m.Visit != nil && m.visited(c.addr)
	}
	signal = call != Adjusted && m.isTrampoline(c.addr)
	if c.exact && c.mixed {
		if yes, _ := m.followsCall(c.addr, Return); yes {
			c.err = ErrSeveral
			return signal
		}
	}
	if c.exact || signal {
		call = Exact
	}
	yes, known := m.followsCall(c.addr, call)
	if call == Either {
		call = Exact
		if yes {
			call = Return
		}
	}
	c.lookup = c.addr
	if call == Return || call == System && m.followsSystemCall(c.addr) {
		c.lookup--
	}
	if f.Program && !m.isCode(c.lookup) {
		c.err = ErrNoModule // it may be an address of anything
		return false
	}
	if !m.isCode(c.lookup) {
		c.err = ErrNotCode
		c.of.fail(c.addr)
		return false
	}
	if f.Symbol.Inside {
		if all := m.symbols(f.Symbol.Name); len(all) > 0 && !isInside(all, c.lookup) && !isInside(all, c.addr) {
			c.err, c.of.refuted = ErrSymbol, ErrSymbol
			return false
		}
	} else if same, has := m.symbolAt(f.Symbol, c.addr); has && !derived {
		if !same {
			c.err, c.of.refuted = ErrSymbol, ErrSymbol
			return false
		}
		c.of.symbols++
		c.verified = BySymbol
	}
	if call == Exact || call == System || call == Adjusted && !yes && (f.Number == 0 || c.identified(f)) || !known {
		return signal // the first frame may be the place of a fault
	}
	if !yes {
		// A symbol that is only a whole number of pages away proves less than one at its distance:
		// linkers align functions, so another build has it there by chance once in 256 times.
		if c.called && (c.verified == "" || f.Kind == Runtime && !m.Fixed) {
			c.err = ErrCall
			c.of.fail(c.addr)
		}
		return signal
	}
	c.of.calls++
	if c.verified == "" {
		c.verified = ByCall
	}
	return signal
}

// located reports whether the code of the frame was found.
func (c *check) located() bool { return c.of != nil && c.of.image.Err == nil && c.err == nil }

// address returns the address of f as the file has it, not adjusted. derived is set if it is that of
// f's symbol, because the line has no other number.
func (v *verdict) address(f *Frame) (addr uint64, derived bool, err error) {
	if addr, ok := numbered(v.image, f); ok {
		return addr, false, nil
	}
	var syms []object.Symbol
	if !f.Symbol.Inside {
		syms = v.image.symbols(f.Symbol.Name)
	}
	if f.Kind == InSymbol && v.image.Visit != nil {
		syms = v.image.visitedSymbols(f.Symbol.Name)
	}
	switch {
	case f.Kind == FileOffset, f.Kind == CodeOffset, f.Kind == FileOrRuntime:
		return 0, false, ErrNotCode
	case f.Kind == Runtime:
		addr, err = v.runtime(f, syms)
		return addr, false, err
	case len(syms) == 0:
		return 0, false, ErrNoSym
	case len(syms) > 1:
		return 0, false, ErrManySym
	}
	return syms[0].Addr + uint64(f.Symbol.Offset), true, nil
}

// runtime returns the address, as the file has it, of a frame with an address in the process, whose
// symbol is one of syms. The symbol counts more than the bias, which may be that of another process
// that writes to the same log. If the address is not a whole number of pages away from the symbol,
// the file is not the one that ran.
func (v *verdict) runtime(f *Frame, syms []object.Symbol) (uint64, error) {
	if len(syms) == 0 {
		if !v.biased || v.moved {
			return 0, ErrNoBias
		}
		return f.Addr - v.bias, nil
	}
	found, n := uint64(0), 0
	for _, s := range syms {
		addr := s.Addr + uint64(f.Symbol.Offset)
		switch {
		case v.biased && addr == f.Addr-v.bias:
			return addr, nil
		case !v.image.Fixed && (f.Addr-addr)%pageSize == 0:
			found, n = addr, n+1
		}
	}
	switch n {
	case 0:
		return 0, ErrSymbol
	case 1:
		return found, nil
	}
	return 0, ErrManySym
}

// identified reports whether the file has the build ID that the log has for f.
func (c *check) identified(f *Frame) bool { return !f.ID.IsZero() && c.of.image.ID == f.ID }

// conclude sets the Place of f.
func (c *check) conclude(f *Frame) {
	p := &f.Place
	byID := !f.ID.IsZero() || !f.prefix.IsZero()
	switch v := c.of; {
	case p.Verified != "" || p.Err != nil:
	case v == nil && f.isOfProgram():
		p.Err = ErrNoProgram
	case v == nil:
		p.Err = ErrNoModule
	case v.image.Err != nil:
		*p = Place{Image: v.image, Err: v.image.Err}
	case c.err != nil:
		*p = Place{Image: v.image, Err: c.err}
	case byID && (v.image.File == nil || v.image.ID == f.ID || !f.prefix.IsZero()):
		*p = Place{Image: v.image, Addr: c.lookup, Verified: ByBuildID}
	case v.refuted != nil:
		*p = Place{Image: v.image, Err: ErrRefuted}
	case v.image.Guessed && !v.proved:
		*p = Place{Image: v.image, Err: ErrTitle}
	case c.verified != "":
		*p = Place{Image: v.image, Addr: c.lookup, Verified: c.verified}
	case v.proved || v.image.Given:
		*p = Place{Image: v.image, Addr: c.lookup, Verified: ByPath}
	default:
		*p = Place{Image: v.image, Err: ErrUnproven}
	}
}
