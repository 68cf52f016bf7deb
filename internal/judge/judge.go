package judge

import (
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// A Trace judges the frames of one trace. It keeps its verdicts about modules for later frames.
type Trace struct {
	// Open returns the file for a frame's module, never nil. It is called once for each module.
	Open func(f *dialect.Frame) *Image

	// Named, which may be nil, returns the files with this name in all searched folders. The name
	// has no folders.
	Named func(name string) []*Image

	// Unnamed, which may be nil, returns files that may contain the addresses of frames without a
	// module. The operator or the log, outside of frames, names them.
	Unnamed func() []*Image

	// Mapped returns the mapping of code at an address in one of the processes that wrote the log,
	// or nil. Loaded is called for each frame that a mapping locates. Both functions may be nil.
	Mapped func(addr uint64) *ProcessMap
	Loaded func(p *ProcessMap)

	// Demangle, which may be nil, returns the demangled name as programs show it.
	Demangle func(name string) string

	// Complete, which may be nil, returns the only known build ID that begins with these bytes, or
	// zero.
	Complete  func(prefix buildid.ID) buildid.ID
	completed map[buildid.ID]buildid.ID

	// Quota is the log's quota, which its traces share. If it is nil, the trace has its own.
	Quota *dialect.Quota

	// Memory is the log's memory, which its traces share. If it is nil, the trace has its own.
	Memory *Memory

	// Doubt, which may be nil, is called for a file that a stack refutes although earlier frames of
	// the same process were located in it.
	Doubt func(m *Image)

	// Inferred, which may be nil, is called if calls alone show the base of a file, the address of
	// its first page in the process.
	Inferred func(m *Image, base uint64, by Inference)

	serial  int // number of the trace in its Memory
	modules map[moduleKey]*verdict
	worked  int // comparisons by the searches for biases so far; see maxBiasWork
	files   int // number of files that are tried for frames without a module
	mapped  mapped

	apart bool // frames name their process by number
	known known

	// Results of the last call of Judge, for Known.
	checks []check // nil after many frames
	began  int     // number of the stack before the frames
	steady bool    // each frame took only its own steps: no file was searched or opened

	stack     StackState      // the current stack
	number    int             // number of the last frame
	signals   map[uint64]bool // processes whose last frame was a trampoline
	corrected bool            // Offsetted numbers of a module are not addresses: see Trace.read
	inGiven   bool            // a frame was located in a file that the operator has named
}

// A moduleKey identifies a module in a process.
type moduleKey struct {
	process uint64
	name    string     // name of the module; empty if its build ID is known
	id      buildid.ID // build ID of the module
	prefix  buildid.ID // first bytes of an unknown build ID
	// number of the load address, from 0, if several processes have loaded the module; see
	// verdict.elsewhere
	load int
	base uint64 // Base of a ProcessMap; 0 without one
}

// sureID is the number of bytes of a build ID that identify a file like the whole ID. Fewer bytes
// can only refute other files.
const sureID = 8

const maxModules = 1024 // modules in a trace; further ones stay unresolved

// Costs, in steps, of work that is not counted step by step.
const (
	stepsPerFrame    = 10  // judging a frame in a known module
	stepsPerModule   = 200 // finding the file of a module that an earlier trace has opened
	stepsPerDemangle = 40
	bytesPerStep     = 128 // bytes of a file searched for a text
)

// Judge sets the Place of each frame. frames are in log order; facts are the log's facts about the
// process. If the Quota is exhausted, Judge locates only frames whose own lines suffice.
func (t *Trace) Judge(frames []*Frame, facts *dialect.Facts) {
	t.checks, t.began, t.steady = nil, t.stack.Stack, false
	t.quota().Spend(len(frames) * stepsPerFrame)
	steps := t.quota().Steps()
	if t.quota().Exhausted() {
		refuse(frames)
		return
	}
	for _, v := range t.modules {
		v.cut, v.image.names.over = false, false
	}
	t.assignModules(frames, facts)
	checks := t.compareAll(frames, t.verdictsOf(frames, facts))
	t.linkAll(frames, checks)
	for i := range checks {
		if v := checks[i].of; v != nil {
			v.proved = v.all.proves(v.image)
			v.judgeGiven()
		}
	}
	t.refuteRuns(frames, checks)
	t.judgePrograms(facts.Program())
	t.weighMaps(frames, checks, facts)
	t.concludeAll(frames, checks)
	if t.steady = t.quota().Steps() == steps; len(checks) <= maxKnownFrames {
		t.checks = checks
	}
}

// assignModules sets the module fields of frames, and the Place of each frame that needs no
// comparison with a file.
func (t *Trace) assignModules(frames []*Frame, facts *dialect.Facts) {
	for _, f := range frames {
		t.apart = t.apart || f.Process != 0
		f.Place = Place{}
		t.assign(f, facts)
		if f.Place.Err = neverLocated(f); f.Place.Err != nil {
			continue
		}
		f.PlaceByID()
		t.crashed(f)
	}
	t.proveMaps(frames)
	identifyModules(frames)
}

// verdictsOf returns the verdict of each frame's module, with any load bias that is found. The
// verdict is nil for a frame with an unknown module, and for a frame that is already judged.
func (t *Trace) verdictsOf(frames []*Frame, facts *dialect.Facts) []*verdict {
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
	t.findKernelBiases(frames, of)
	return of
}

// compareAll compares each frame with the file of its module.
func (t *Trace) compareAll(frames []*Frame, of []*verdict) []check {
	checks := make([]check, len(frames))
	mixed, loads := false, make(map[string]int)
	for _, v := range of {
		mixed = mixed || v != nil && (v.moved || mixesLoads(loads, v))
	}
	for i, f := range frames {
		c := &checks[i]
		t.stack.next(f)
		c.stack, c.corrected, c.mixed, c.of = t.stack.Stack, t.corrected, mixed, of[i]
		if c.of == nil || c.of.image.Err != nil {
			// the trampoline of glibc on x86-64 has this name
			t.setSignal(f.Process, f.Symbol.Name == "__restore_rt")
			continue
		}
		c.here, c.exact = c.of.evidence(c.stack), t.signals[f.Process] && f.Number != 0
		c.called = f.Kind != dialect.Offsetted
		if i > 0 {
			c.follow(f, &checks[i-1], frames[i-1])
		}
		signal := false
		if fault := object.Guard(func() { signal = c.compare(t, f) }); fault != nil {
			c.err, signal = fault, false
		}
		t.setSignal(f.Process, signal)
	}
	return checks
}

// follow sets the fields of c that depend on the previous frame. The parameters before and of are
// the check of the previous frame, and that frame itself.
func (c *check) follow(f *Frame, before *check, of *Frame) {
	c.called = c.called || f.Number == of.Number+1 && before.located()
	if c.mayFault = before.mayBeTrampoline(of); c.mayFault {
		c.noLibrary = before.of == nil || before.of.image.Err != nil
	}
}

// linkAll adds the evidence that depends on neighbouring frames. It examines whether a frame
// outside the code is the last of its stack, and whether the callers' calls lead to the called
// frames.
func (t *Trace) linkAll(frames []*Frame, checks []check) {
	for i := range checks {
		if c := &checks[i]; c.strays {
			c.stray(i+1 == len(checks) || checks[i+1].stack != c.stack)
		}
	}
	for i := range checks[min(1, len(checks)):] {
		outer, inner := &checks[i+1], &checks[i]
		if frames[i+1].Number >= 0 && frames[i+1].Number < frames[i].Number { // newest call last
			outer, inner = inner, outer
		}
		object.Guard(func() { outer.link(t, inner) })
	}
}

func (t *Trace) concludeAll(frames []*Frame, checks []check) {
	for i, f := range frames {
		c := &checks[i]
		if c.conclude(f); c.runs && f.Place.Err == nil {
			t.useRun(c)
		}
		if f.live != nil && f.Place.Err == nil && t.Loaded != nil {
			t.Loaded(f.live)
		}
		t.rememberPlace(f)
		t.inGiven = t.inGiven || f.Place.Err == nil && f.Place.Image != nil && f.Place.Image.Given
	}
	for _, f := range frames {
		if t.inGiven && f.Place.Err == ErrOutside {
			f.Place.Err = ErrNoCode
		}
	}
}

// A mapped counts frames that only old maps locate. agree counts frames that agree with the file of
// their map, and fail counts frames that contradict it.
type mapped struct{ agree, fail int }

// weighMaps sets ErrOldMaps for frames that only the maps of an earlier trace locate, since these
// maps may be another process's. It accepts the maps if enough frames agree with their files, and
// no frame contradicts them.
func (t *Trace) weighMaps(frames []*Frame, checks []check, facts *dialect.Facts) {
	if _, old := facts.MapsOf(); !old {
		return
	}
	for i, f := range frames {
		switch c := &checks[i]; {
		case !f.mapped || c.of == nil || c.of.image.Err != nil:
		case c.err != nil:
			t.mapped.fail++
		case c.verified != "":
			t.mapped.agree++
		}
	}
	if t.mapped.agree >= guessedCalls && t.mapped.fail == 0 {
		return
	}
	for i, f := range frames {
		if f.mapped && checks[i].err == nil {
			checks[i].err = ErrOldMaps
		}
	}
}

// setSignal records whether a signal has interrupted the next frame of a process. That frame may be
// judged by a later call.
func (t *Trace) setSignal(process uint64, signal bool) {
	switch {
	case !signal:
		delete(t.signals, process)
	case t.signals == nil:
		t.signals = map[uint64]bool{process: true}
	case len(t.signals) < maxModules:
		t.signals[process] = true
	}
}

// EndStack ends the current stack: the next frame begins another one.
func (t *Trace) EndStack() {
	clear(t.signals)
	t.stack.Stack++
}

// Lasts returns how many lines of the log may follow the last frame before the trace ends. The
// number is larger if frames name their process, as in reports of Valgrind, where errors are far
// apart.
func (t *Trace) Lasts() int64 {
	if t.apart {
		return dialect.FactLines
	}
	return dialect.WindowLines
}

// Apart reports whether the frames of the trace name their process. Such a trace may be long, since
// it has all errors of a process.
func (t *Trace) Apart() bool { return t.apart }

// assign sets the module fields of f from facts in the lines around it, and from its process's
// maps.
func (t *Trace) assign(f *Frame, facts *dialect.Facts) {
	if f.Kernel != nil {
		if f.Module == dialect.KernelImage {
			f.ID = f.Kernel.Named().ID
		}
		return
	}
	if f.Module == "" && f.Addr != 0 {
		if m, ok := facts.Around(f.Frame); ok {
			f.Module, f.mapped = m.Path, true
		}
	}
	if f.Module == "" && f.Program {
		f.Module = facts.Main().Name
	}
	if f.Prefix.Len() >= sureID {
		t.complete(f, f.Prefix)
	}
	if f.ID.IsZero() && f.Module != "" {
		if m, ok := facts.Module(f.Module); ok {
			f.ID = m.ID
			t.complete(f, m.Prefix)
		}
	}
	t.askProcess(f, facts)
}

// complete sets the build ID of f's module, if it has none, to the known ID that begins with
// prefix. If there is no such ID, it sets f.Prefix.
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
		f.Prefix = prefix
	}
}

func (t *Trace) quota() *dialect.Quota {
	if t.Quota == nil {
		t.Quota = new(dialect.Quota)
	}
	return t.Quota
}

// refuse locates only frames whose own lines suffice: see PlaceByID. It sets ErrBudget for all
// other frames.
func refuse(frames []*Frame) {
	for _, f := range frames {
		if f.Place = (Place{Err: neverLocated(f)}); f.Place.Err == nil && !f.PlaceByID() {
			f.Place.Err = ErrBudget
		}
	}
}
