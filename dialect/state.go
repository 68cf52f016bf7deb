package dialect

import (
	"cmp"
	"maps"
	"slices"

	"github.com/symfilter/symfilter/buildid"
)

// A State is what a Reader knows of the lines so far, but for its Facts. Numbers are those of lines;
// -1 is before the first.
type State struct {
	Number     int64    `json:"number"` // of the current line
	ReadTo     int64    `json:"read"`
	PastAt     int64    `json:"past"`
	HoldsUntil int64    `json:"holds"`
	FactsAt    int64    `json:"facts"`
	Until      []int64  `json:"until"` // of each window that was opened
	ExactAfter int64    `json:"exact_after,omitempty"`
	DumpAt     int64    `json:"dump,omitempty"`
	FirstFrame int64    `json:"first_frame"`
	MapAt      int64    `json:"map"`
	MapStart   uint64   `json:"map_start,omitempty"`
	SignalAt   int64    `json:"signal,omitempty"`
	FrameAt    int64    `json:"frame"`
	GDBSignal  [2]int64 `json:"gdb"` // the number of a frame, and its line
}

// State returns the state of r.
func (r *Reader) State() State {
	n := len(r.until)
	for n > 0 && r.until[n-1] < 0 {
		n--
	}
	return State{r.number, r.readTo, r.pastAt, r.holdsUntil, r.factsAt, slices.Clone(r.until[:n]), r.exactAfter, r.dumpAt,
		r.firstFrame, r.mapAt, r.mapStart, r.signalAt, r.frameAt, [2]int64{int64(r.gdbSignal), r.gdbSignalAt}}
}

// SetState sets the state of r to one that State has returned. It ignores windows that do not exist.
func (r *Reader) SetState(s State) {
	r.number, r.readTo, r.pastAt, r.holdsUntil, r.factsAt = s.Number, s.ReadTo, s.PastAt, s.HoldsUntil, s.FactsAt
	r.exactAfter, r.dumpAt, r.latest = s.ExactAfter, s.DumpAt, -1
	r.firstFrame, r.mapAt, r.mapStart, r.signalAt, r.frameAt = s.FirstFrame, s.MapAt, s.MapStart, s.SignalAt, s.FrameAt
	r.gdbSignal, r.gdbSignalAt = int(s.GDBSignal[0]), s.GDBSignal[1]
	for i := range r.until {
		r.until[i] = -1
		if i < len(s.Until) {
			r.until[i] = min(s.Until[i], s.Number+windowLines)
		}
		r.latest = max(r.latest, r.until[i])
	}
}

// SetFacts replaces the Facts of r. Facts must not be used by two Readers.
func (r *Reader) SetFacts(f Facts) { r.facts = f }

// Know makes r begin with facts of earlier lines of the log. r must be new or reset, and becomes the
// owner of their memory.
func (r *Reader) Know(f Facts) { r.facts, r.factsAt = f, 0 }

// AddModule adds a module that the log names around the current line, but not in a line of its own.
func (r *Reader) AddModule(m ModuleFact) {
	r.touchFacts(r.number)
	r.facts.AddModule(m)
}

// Maps returns the mappings, which must not be modified.
func (f *Facts) Maps() []Map { return f.maps }

// Modules returns what is known of the modules, the program itself first.
func (f *Facts) Modules() (all []ModuleFact) {
	if f.main != (ModuleFact{}) {
		all = append(all, f.main)
	}
	for _, name := range slices.Sorted(maps.Keys(f.modules)) {
		if m := f.modules[name]; m != f.main {
			all = append(all, m)
		}
	}
	return all
}

// Size returns about how many bytes of memory f takes.
func (f *Facts) Size() int {
	const perMap, perModule = 56, 120
	return cap(f.maps)*perMap + len(f.modules)*perModule + f.bytes
}

// A Verdict is what the frames of a Trace so far show of one module.
type Verdict struct {
	Module  string
	ID      buildid.ID
	Bias    uint64
	Biased  bool // Bias is known
	Proved  bool
	Refuted error
	Symbols int      // frames that agree with the symbols of the file
	Calls   int      // return addresses after a call
	Failed  []uint64 // addresses that contradict the file
	Process uint64   // the process that has the module, as in Frame
	Moved   bool     // several processes have it at different places
}

// Verdicts returns what t knows of its modules, by name.
func (t *Trace) Verdicts() (all []Verdict) {
	for key, v := range t.modules {
		if v.name == "" && v.id.IsZero() {
			continue // no frame has named it yet
		}
		of := Verdict{
			Module: v.name, ID: v.id, Bias: v.bias, Biased: v.biased, Proved: v.proved, Refuted: v.refuted,
			Symbols: v.symbols, Calls: v.calls, Failed: v.failed, Process: key.process, Moved: v.moved,
		}
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.ID.String(), b.ID.String()), cmp.Compare(a.Process, b.Process))
	})
	return all
}

// Resume makes t, which is new, know the module of v. It opens the file of the module.
func (t *Trace) Resume(v Verdict) {
	of := t.verdictOf(&Frame{Module: v.Module, ID: v.ID, Process: v.Process})
	if of == nil {
		return
	}
	t.apart = t.apart || v.Process != 0
	of.bias, of.biased, of.proved, of.refuted = v.Bias, v.Biased, v.Proved, v.Refuted
	of.symbols, of.calls, of.failed, of.moved = v.Symbols, v.Calls, v.Failed[:min(len(v.Failed), maxFailures)], v.Moved
}
