package dialect

import (
	"maps"
	"slices"
)

// A State is the state of a Reader after the lines read so far, without its Facts. Its line numbers
// are -1 before the first line.
type State struct {
	Number     int64    `json:"number"` // the current line
	ReadTo     int64    `json:"read"`
	PastAt     int64    `json:"past"`
	HoldsUntil int64    `json:"holds"`
	FactsAt    int64    `json:"facts"`
	Until      []int64  `json:"until"` // last line of each window, as saved returns them
	ExactAfter int64    `json:"exact_after,omitempty"`
	DumpAt     int64    `json:"dump,omitempty"`
	FirstFrame int64    `json:"first_frame"`
	MapAt      int64    `json:"map"`
	MapStart   uint64   `json:"map_start,omitempty"`
	SignalAt   int64    `json:"signal,omitempty"`
	FrameAt    int64    `json:"frame"`
	GDBSignal  [2]int64 `json:"gdb"` // frame number, and its line
	SignalPC   uint64   `json:"signal_pc,omitempty"`
	DiedAt     int64    `json:"died,omitempty"`
	Fault32    uint64   `json:"fault,omitempty"`
	Fault32At  int64    `json:"fault_at,omitempty"`
	Searched   int      `json:"searched,omitempty"` // used steps of the Quota

	EnvoyThread int    `json:"envoy_thread,omitempty"` // file of the next frames of a thread
	EnvoyPath   string `json:"envoy_path,omitempty"`
	EnvoyAt     int64  `json:"envoy,omitempty"`

	Kernel savedKernel `json:"kernel,omitzero"`
}

// State returns the state of r.
func (r *Reader) State() State {
	var s State
	r.Mark(&s)
	s.Until = r.windows.saved()
	return s
}

// Mark sets s to the state of r, but sets s.Until to nil. It takes a few nanoseconds, and is called
// for each line with a frame.
func (r *Reader) Mark(s *State) {
	s.Number, s.ReadTo, s.PastAt, s.FrameAt = r.number, r.readTo, r.pastAt, r.frameAt
	s.HoldsUntil, s.Until = r.holdsUntil, nil
	s.FactsAt, s.MapAt, s.MapStart = r.facts.at, r.facts.mapAt, r.facts.mapStart
	s.ExactAfter, s.DumpAt = r.glibc.exactAfter, r.glibc.dumpAt
	s.SignalAt, s.FirstFrame, s.SignalPC = r.clickHouseSignal, r.jvmFrame, r.goSignal
	s.GDBSignal[0], s.GDBSignal[1] = int64(r.gdb.frame), r.gdb.at
	s.DiedAt, s.Fault32, s.Fault32At, s.Searched = r.deaths.at, r.device.pc, r.device.at, r.quota.used
	s.EnvoyThread, s.EnvoyPath, s.EnvoyAt = r.envoy.thread, r.envoy.path, r.envoy.line
	r.kernel.save(&s.Kernel)
}

// SetState sets the state of r to s, a result of State. It ignores unknown windows.
func (r *Reader) SetState(s State) {
	r.number, r.readTo, r.pastAt, r.frameAt = s.Number, s.ReadTo, s.PastAt, s.FrameAt
	r.holdsUntil = s.HoldsUntil
	r.windows.restore(s.Until, s.Number)
	r.facts.at, r.facts.mapAt, r.facts.mapStart = s.FactsAt, s.MapAt, s.MapStart
	r.glibc = glibcFault{exactAfter: s.ExactAfter, dumpAt: s.DumpAt}
	r.clickHouseSignal, r.jvmFrame, r.goSignal = s.SignalAt, s.FirstFrame, s.SignalPC
	r.gdb = gdbSignal{frame: int(s.GDBSignal[0]), at: s.GDBSignal[1]}
	r.deaths.at, r.device = s.DiedAt, deviceFault{pc: s.Fault32, at: s.Fault32At}
	r.envoy = envoyObject{}
	if len(s.EnvoyPath) <= maxPath {
		r.envoy = envoyObject{thread: s.EnvoyThread, path: s.EnvoyPath, line: s.EnvoyAt}
	}
	r.quota.used = min(max(s.Searched, 0), 2*MaxLogSteps)
	r.kernel.restore(&s.Kernel)
}

// SetFacts replaces the Facts of r. Two Readers must not share Facts.
func (r *Reader) SetFacts(f Facts) { r.facts.Facts = f }

// SetEarlierFacts sets the facts from earlier lines of the log. r must be new or reset, and takes
// ownership of f.
func (r *Reader) SetEarlierFacts(f Facts) { r.facts.Facts, r.facts.at = f, 0 }

// AddModule adds a module that the log names near the current line, but not in a line that r reads.
// An example is a field of a journal entry.
func (r *Reader) AddModule(m ModuleFact) {
	r.facts.touch(r.number)
	r.facts.AddModule(m)
}

// MapsOf returns the process that has logged the mappings, or 0 if unknown, and whether they are
// from an earlier trace.
func (f *Facts) MapsOf() (process uint64, old bool) { return f.process, f.old }

// SetMapsOf sets the results of MapsOf.
func (f *Facts) SetMapsOf(process uint64, old bool) {
	if process != f.process || old != f.old {
		f.process, f.old = process, old
		f.changes++
	}
}

// Maps returns the mappings, which must not be modified.
func (f *Facts) Maps() []Map { return f.maps }

// Modules returns the facts about modules, the program itself first.
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

// Size returns the approximate bytes of memory of f.
func (f *Facts) Size() int {
	const perMap, perModule = 56, 120
	return cap(f.maps)*perMap + len(f.modules)*perModule + f.bytes
}
