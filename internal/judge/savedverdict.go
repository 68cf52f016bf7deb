package judge

import (
	"cmp"
	"slices"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// A TraceState is the state of a Trace without its Verdicts, for a checkpoint.
type TraceState struct {
	Number  int      `json:"number,omitempty"`  // number of the last frame
	Signals []uint64 `json:"signals,omitempty"` // processes whose last frame was a trampoline
	StackState
	Corrected bool `json:"corrected,omitempty"` // Offsetted numbers of a module are not addresses
	Worked    int  `json:"worked,omitempty"`    // comparisons made by the search for biases
	// frames, located only by old maps, that agree with the files of the maps
	Agree int `json:"agree,omitempty"`
	// frames, located only by old maps, that contradict the files of the maps
	Fail int `json:"fail,omitempty"`
}

// State returns the state of t without its Verdicts.
func (t *Trace) State() TraceState {
	s := TraceState{Number: t.number, StackState: t.stack, Corrected: t.corrected, Worked: t.worked, Agree: t.mapped.agree, Fail: t.mapped.fail}
	for process := range t.signals {
		s.Signals = append(s.Signals, process)
	}
	slices.Sort(s.Signals)
	return s
}

// SetState sets the state of t, which must be new.
func (t *Trace) SetState(s TraceState) {
	t.stack = s.StackState
	t.number, t.corrected, t.worked = s.Number, s.Corrected, min(max(s.Worked, 0), maxBiasWork)
	t.mapped = mapped{s.Agree, s.Fail}
	for _, process := range s.Signals {
		t.setSignal(process, true)
	}
}

// A Verdict holds the evidence about one module so far, for a checkpoint. Module, ID, Prefix,
// Process, Addr, Program and Deleted are from the first frame that named the module.
type Verdict struct {
	Module  string     `json:"-"`
	ID      buildid.ID `json:"-"` // zero if it is not known
	Prefix  buildid.ID `json:"-"` // first bytes of the build ID, if the log has only these
	Refuted error      `json:"-"`
	Process uint64     `json:"process,omitempty"` // process with the module
	Addr    uint64     `json:"addr,omitempty"`
	Program bool       `json:"program,omitempty"`
	Deleted bool       `json:"deleted,omitempty"`

	// Path is set for a file that was tried for frames without a module. The fields from the first
	// frame that named the module are then zero.
	Path string `json:"-"`

	Bias   uint64 `json:"bias,omitempty"`
	Biased bool   `json:"biased,omitempty"` // Bias is known
	// calls before return addresses have shown Bias
	Inferred bool `json:"inferred,omitempty"`
	// frames have different biases: several processes write to the log
	Moved  bool     `json:"moved,omitempty"`
	Proved bool     `json:"proved,omitempty"`
	All    Evidence `json:"all,omitzero"`
	Here   Evidence `json:"here,omitzero"`   // evidence of the current stack
	Stack  int      `json:"stack,omitempty"` // number of that stack
	// number of the load address, from 0, if several processes have loaded the module
	Load int `json:"load,omitempty"`
	// addresses that the bias must explain, until it is known
	Seen  []Sighting `json:"-"`
	Tried int        `json:"tried,omitempty"` // length of Seen at the last search
	Usual uint64     `json:"usual,omitempty"` // a likely bias

	Weighed [3]Weighing `json:"weighed,omitzero"` // counts for each meaning of Offsetted numbers
	Reading int         `json:"reading,omitempty"`
	Unread  bool        `json:"unread,omitempty"`
	Unseen  bool        `json:"unseen,omitempty"`
}

// A Sighting is an address of a module with an unknown load bias.
type Sighting struct {
	Addr   uint64       `json:"addr"`
	Call   dialect.Call `json:"call,omitempty"`
	Symbol []byte       `json:"symbol,omitempty"` // symbol in the log at the address
}

// A Weighing counts the frames for and against one meaning of their numbers.
type Weighing struct {
	Calls  int    `json:"calls,omitempty"`
	Failed int    `json:"failed,omitempty"`
	Addr   uint64 `json:"addr,omitempty"`
}

// Verdicts returns the verdicts on the modules of t, sorted by name.
func (t *Trace) Verdicts() (all []Verdict) {
	for key, v := range t.modules {
		if v.first.Kernel != nil { // the next frames of a kernel prove it again
			continue
		}
		of := Verdict{
			Module: v.first.Module, ID: v.first.ID, Prefix: v.first.Prefix, Process: key.process, Addr: v.first.Addr,
			Program: v.first.Program, Deleted: v.first.Deleted, Path: v.unnamed,
			Bias: v.bias, Biased: v.biased, Inferred: v.inferred, Moved: v.moved, Proved: v.proved, Refuted: v.refuted,
			All: v.all, Stack: v.stack, Load: key.load, Tried: v.tried, Usual: v.usual,
			Reading: int(v.reading), Unread: v.unread, Unseen: v.unseen,
		}
		if v.here != nil {
			of.Here = *v.here
		}
		for i := range v.seen {
			s := &v.seen[i]
			of.Seen = append(of.Seen, Sighting{s.addr, s.call, []byte(s.name)})
		}
		for i, w := range v.weighed {
			of.Weighed[i] = Weighing{w.calls, w.failed, w.addr}
		}
		all = append(all, of)
	}
	slices.SortFunc(all, func(a, b Verdict) int {
		return cmp.Or(cmp.Compare(a.Module, b.Module), cmp.Compare(a.ID.String(), b.ID.String()), cmp.Compare(a.Prefix.String(), b.Prefix.String()),
			cmp.Compare(a.Process, b.Process), cmp.Compare(a.Load, b.Load), cmp.Compare(a.Path, b.Path))
	})
	return all
}

// Resume sets the verdicts of t, which must be new, and opens the files of their modules.
func (t *Trace) Resume(verdicts []Verdict) {
	var unnamed map[string]*Image
	for i := range verdicts {
		v := &verdicts[i]
		var of *verdict
		if v.Path != "" {
			if unnamed == nil {
				unnamed = t.unnamedByPath()
			}
			if m := unnamed[v.Path]; m != nil {
				of = t.unnamedVerdict(m)
			}
		} else {
			f := dialect.Frame{LoggedPlace: dialect.LoggedPlace{Module: v.Module, ID: v.ID, Prefix: v.Prefix, Addr: v.Addr, Program: v.Program, Deleted: v.Deleted}, Proof: dialect.Proof{Process: v.Process}}
			key := keyOf(&f)
			key.load = v.Load
			of = t.verdictOfModule(key, &f, nil)
		}
		if of != nil {
			t.apart = t.apart || v.Process != 0
			of.resume(v)
		}
	}
}

// unnamedByPath returns the files that may contain the addresses of frames without a module, by
// path.
func (t *Trace) unnamedByPath() map[string]*Image {
	all := make(map[string]*Image)
	if t.Unnamed != nil {
		for _, m := range t.Unnamed() {
			if all[m.Path] == nil && m.Err == nil && m.File != nil {
				all[m.Path] = m
			}
		}
	}
	return all
}

// resume sets the fields of v, which is new, from s. It cuts lists at their bounds.
func (v *verdict) resume(s *Verdict) {
	v.bias, v.biased, v.inferred = s.Bias, s.Biased, s.Inferred
	v.moved, v.proved, v.refuted = s.Moved, s.Proved, s.Refuted
	here := s.Here.bounded()
	v.all, v.here, v.stack = s.All.bounded(), &here, s.Stack
	v.tried, v.usual = max(s.Tried, 0), s.Usual
	for _, seen := range s.Seen[:min(len(s.Seen), maxSightings)] {
		to := sighting{addr: seen.Addr, call: min(seen.Call, dialect.System), name: string(seen.Symbol)}
		// without symbols the address only proves less
		_ = object.Guard(func() { to.inside = v.image.symbols(to.name) })
		v.seen = append(v.seen, to)
	}
	for i, w := range s.Weighed {
		v.weighed[i] = weighing{w.Calls, w.Failed, w.Addr}
	}
	v.reading, v.unread, v.unseen = reading(min(max(s.Reading, 0), int(readings)-1)), s.Unread, s.Unseen
}
