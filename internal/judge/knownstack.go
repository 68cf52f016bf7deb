package judge

import (
	"slices"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// A KnownStack is a stack whose frames a Trace has all located. Any Trace with the same files
// locates an equal stack in the same way, unless evidence in that Trace contradicts one of the
// files. The KnownStack keeps the evidence of the stack, which counts for later stacks.
type KnownStack struct {
	frames  int
	first   dialect.Frame // only the fields of the first frame that separate it from earlier stacks
	end     StackState    // state after the last frame; its Stack is not used
	called  bool          // check.called of the first frame, if matters is set
	matters bool
	modules []knownModule
	runs    []run
	apart   bool
}

// A knownModule has the evidence from a known stack for the file of one module.
type knownModule struct {
	key        moduleKey
	file       sum
	biased     bool
	bias       uint64
	identified bool // the build ID in the log identifies the file: it needs no proof
	evidence   Evidence
	offsetted  bool // weighed is set
	weighed    [readings]weighing
}

// maxKnownFrames bounds the frames of a call of Judge. After a call with more frames, no stack
// becomes known.
const maxKnownFrames = 1024

// EndOfStack returns the index of the first frame after the stack of frame i, among the frames of
// the last call of Judge. It returns i if that call had too many frames for Known.
func (t *Trace) EndOfStack(i int) int {
	end := i
	for end < len(t.checks) && t.checks[end].stack == t.checks[i].stack {
		end++
	}
	return end
}

// Known returns the KnownStack of frames[from:to], or nil if another Trace might judge an equal
// stack differently. frames are the frames of the last call of Judge.
func (t *Trace) Known(frames []*Frame, from, to int) *KnownStack {
	checks := t.checks
	if !t.steady || len(checks) != len(frames) || t.Mapped != nil || t.corrected || len(t.signals) > 0 {
		return nil
	}
	first, last := &checks[from], frames[to-1]
	if first.stack <= t.began || from > 0 && checks[from-1].stack == first.stack || to < len(checks) && checks[to].stack == first.stack ||
		frames[from].Number > 0 || checks[to-1].mayBeTrampoline(last) {
		return nil
	}
	f := frames[from]
	k := &KnownStack{
		frames: to - from, end: StackState{Process: f.Process, Last: f.Number},
		called: first.called, matters: first.returns == 0 && first.of != nil && first.of.image.File != nil,
	}
	k.first.Number, k.first.Process, k.first.Apart, k.first.Kind = f.Number, f.Process, f.Apart, f.Kind
	for _, f := range frames[from+1 : to] {
		k.end.next(f)
	}
	for i := from; i < to; i++ {
		if f, c := frames[i], &checks[i]; c.stack != first.stack || !c.agrees(f) || !k.add(f, c) {
			return nil
		}
		k.apart = k.apart || frames[i].Process != 0
	}
	if !k.weigh(t, frames[from:to]) {
		return nil
	}
	return k
}

// agrees reports whether f is located, and whether f affects the judgement of other frames only
// through the evidence for its file.
func (c *check) agrees(f *Frame) bool {
	if f.Place.Err != nil || f.Place.Verified == "" || c.of == nil || !f.isOrdinary() || !c.isOrdinary() {
		return false
	}
	return c.of.isClear() && (c.of.biased || f.Kind != dialect.Runtime) && (c.of.isBuildOf(f) || c.of.isSure())
}

// isOrdinary reports whether f has a module, was not located by maps, and has no field that is
// rarely set, such as listed code.
func (f *Frame) isOrdinary() bool {
	if f.Module == "" || f.mapped || f.live != nil || f.likely != nil || f.Program || !f.Prefix.IsZero() {
		return false
	}
	return !f.Named && !f.Data && !f.Optional && !f.Footnote && !f.Unsure &&
		f.Kernel == nil && f.Crash == nil && f.Load == nil && f.Listed == nil && f.Unread == nil && len(f.Code) == 0
}

// isOrdinary reports whether the frame was judged without a signal and without a doubt about its
// file.
func (c *check) isOrdinary() bool {
	return c.err == nil && !c.exact && !c.signal && !c.trampoline && !c.mayFault && !c.faults && !c.strays && !c.mixed &&
		!c.corrected && !c.astray && !c.unclear && !c.refuted
}

// isClear reports whether no evidence contradicts the file of the module, and only one process has
// loaded it.
func (v *verdict) isClear() bool {
	m, e := v.image, &v.all
	return m.Err == nil && !m.Given && !m.Younger && v.unnamed == "" && v.refuted == nil && !v.moved && v.load == 0 &&
		len(e.Failed) == 0 && e.Contradicted == 0 && e.Stray == 0 && e.Trampolines == 0 &&
		v.reading == asVaddr && !v.unread && !v.unseen && v.weighed[asVaddr].failed == 0
}

// isSure reports whether the file is proved, with enough calls for frames that nothing links to
// their neighbours.
func (v *verdict) isSure() bool { return v.proved && len(v.all.Called) >= unlinkedFaultCalls }

// add adds the evidence of the stack about the module of f. It returns false for evidence against
// the file, and for a full list, since either may change how other frames are judged.
func (k *KnownStack) add(f *Frame, c *check) bool {
	if c.runs && !slices.Contains(k.runs, c.run) {
		k.runs = append(k.runs, c.run)
	}
	key := keyOf(f.Frame)
	for i := range k.modules {
		if k.modules[i].key == key {
			return true
		}
	}
	e := c.here
	if e == nil || len(e.Failed) > 0 || len(e.Called) == maxEvidence || e.Contradicted > 0 || e.Trampolines > 0 {
		return false
	}
	m := knownModule{key: key, file: c.of.file, biased: c.of.biased, bias: c.of.bias, identified: c.of.isBuildOf(f), evidence: *e}
	m.evidence.Called = slices.Clip(slices.Clone(e.Called))
	k.modules = append(k.modules, m)
	return true
}

// weigh sets the counts of Offsetted frames for and against each reading, as Trace.read does for a
// trace. It returns false if a file cannot be read, or if a frame contradicts asVaddr.
func (k *KnownStack) weigh(t *Trace, frames []*Frame) bool {
	for i, f := range frames {
		if f.Kind != dialect.Offsetted {
			continue
		}
		for n := range k.modules {
			m := &k.modules[n]
			if m.key != keyOf(f.Frame) {
				continue
			}
			v := verdict{image: t.modules[m.key].image, weighed: m.weighed}
			called := i > 0 && f.Number > 0 && f.Number == frames[i-1].Number+1
			if !v.image.visit(func(file *object.File) { v.weigh(file, f, called) }) || v.weighed[asVaddr].failed > 0 {
				return false
			}
			m.weighed, m.offsetted = v.weighed, true
		}
	}
	return true
}

// JudgeKnown judges stacks as Judge would, and returns true. If it returns false, it has changed
// nothing, and the caller must call Judge.
func (t *Trace) JudgeKnown(stacks []*KnownStack, facts *dialect.Facts) bool {
	frames := 0
	for _, k := range stacks {
		frames += k.frames
	}
	state, ok := t.locatesAll(stacks, frames*stepsPerFrame)
	if !ok || !facts.Silent() || t.Mapped != nil {
		return false
	}
	t.quota().Spend(frames * stepsPerFrame)
	state = t.stack
	for _, k := range stacks {
		state.next(&Frame{Frame: &k.first})
		state = StackState{state.Stack, k.end.Process, k.end.Last, k.end.Down}
		t.apart, t.number = t.apart || k.apart, k.end.Last
		for i := range k.modules {
			m := &k.modules[i]
			t.modules[m.key].count(m, state.Stack)
		}
		for _, r := range k.runs {
			if used, _ := t.remembered().runs.get(t.again(r), maxRuns); !used.named {
				t.remembered().runs.put(t.again(r), usage{named: true}, maxRuns)
			}
		}
	}
	t.stack = state
	return true
}

// locatesAll reports whether t would locate all frames of the stacks, which follow each other, with
// this number of steps. It returns the state of the stack after the last frame.
func (t *Trace) locatesAll(stacks []*KnownStack, steps int) (state StackState, ok bool) {
	state = t.stack
	if t.corrected || t.serial == 0 || len(t.signals) > 0 || t.quota().Left()-steps <= -dialect.MaxLogSteps {
		return state, false
	}
	for i, k := range stacks {
		before, called := state, k.first.Kind != dialect.Offsetted
		state.next(&Frame{Frame: &k.first})
		called = called || i > 0 && before.Last+1 == k.first.Number
		if state.Stack == before.Stack || k.matters && called != k.called {
			return state, false
		}
		state = StackState{state.Stack, k.end.Process, k.end.Last, k.end.Down}
		for n := range k.modules {
			m := &k.modules[n]
			v := t.modules[m.key]
			if v == nil || v.file != m.file || v.biased != m.biased || v.bias != m.bias || !v.isClear() || !m.identified && !v.isSure() {
				return state, false
			}
		}
		for _, r := range k.runs {
			if used, _ := t.remembered().runs.get(t.again(r), maxRuns); used.refuted {
				return state, false
			}
		}
	}
	return state, true
}

// again returns the run in t that corresponds to r, a run in an earlier trace. If only the trace
// identifies r, the result has the number of t instead.
func (t *Trace) again(r run) run {
	if r.trace != 0 {
		r.trace = t.serial
	}
	return r
}

// count adds the evidence m of a known stack to v. The argument stack is the number of that stack
// in v's trace.
func (v *verdict) count(m *knownModule, stack int) {
	for _, addr := range m.evidence.Called {
		addOnce(&v.all.Called, addr)
	}
	v.all.Symbols += m.evidence.Symbols
	v.all.Linked = max(v.all.Linked, m.evidence.Linked)
	here := m.evidence
	v.here, v.stack = &here, stack
	for i := range m.weighed {
		if w := &v.weighed[i]; m.offsetted {
			*w = weighing{w.calls + m.weighed[i].calls, w.failed + m.weighed[i].failed, m.weighed[i].addr}
		}
	}
	v.proved = v.all.proves(v.image)
}
