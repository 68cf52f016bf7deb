package judge

import (
	"slices"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// placeUnnamed finds the modules of frames that have only an address, as in traces of glog and
// Rust. It tries the files that the operator or the log names. The load bias of such a file is
// fixed, given by the operator, or found from function names or calls before return addresses.
// placeUnnamed updates verdicts, which has an element for each frame.
func (t *Trace) placeUnnamed(frames []*Frame, verdicts []*verdict) {
	var unnamed, ofProgram []*Frame
	for _, f := range frames {
		switch {
		case f.isUnnamed():
			unnamed = append(unnamed, f)
		case f.isOfProgram():
			ofProgram = append(ofProgram, f)
		}
	}
	if len(unnamed)+len(ofProgram) == 0 || t.Unnamed == nil {
		return
	}
	tries := t.tryUnnamed(unnamed, ofProgram)
	for i, f := range frames {
		switch {
		case f.isOfProgram() && len(tries.programs) == 1:
			verdicts[i] = tries.programs[0]
		case f.isUnnamed():
			verdicts[i], f.Place.Err = tries.covering(f, verdicts[i])
		}
	}
}

// A tries holds the results for the files that were tried for frames without a module.
type tries struct {
	files    []*verdict // files whose load bias is known
	programs []*verdict // files that may contain frames with an address of an ELF file
	// the load bias of an operator's file is known, and was not inferred from calls
	fixed    bool
	unproven error // why the load bias of a file that the operator has named is not known
}

// tryUnnamed examines the files that Unnamed returns. It finds their load biases from the addresses
// of the frames in unnamed. It also finds the files that may contain the frames in ofProgram, whose
// addresses are addresses in an ELF file.
func (t *Trace) tryUnnamed(unnamed, ofProgram []*Frame) (all tries) {
	var tried []*verdict
	images := t.Unnamed()
	t.files = len(images)
	for _, m := range images {
		if m.Err != nil || m.File == nil {
			continue
		}
		v := t.unnamedVerdict(m)
		if v == nil || v.image.File == nil || slices.Contains(tried, v) {
			continue
		}
		tried = append(tried, v)
		object.Guard(func() {
			if len(unnamed) > 0 {
				t.biasOfUnnamed(v, unnamed)
			}
			if len(ofProgram) > 0 && v.mayHave(ofProgram) {
				all.programs = append(all.programs, v)
			}
		})
		switch {
		case v.biased:
			all.files = append(all.files, v)
			all.fixed = all.fixed || m.Given && !v.inferred
		case m.Given && (v.voted > 0 || v.cut):
			all.unproven = v.unproven()
		}
	}
	return all
}

// covering returns the verdict on the only file that has the address of f. If several files have
// the address, covering returns nil and a SeveralError, since only one can be loaded there. If no
// file has it, covering returns its second argument. The error is then ErrOutside if an operator's
// file has a known load bias, or t.unproven if no file has one.
func (t *tries) covering(f *Frame, of *verdict) (*verdict, error) {
	found := 0
	var several *SeveralError
	for _, v := range t.files {
		object.Guard(func() {
			if s := (sighting{addr: f.Addr, call: f.Call}); v.image.covers(s.lookup() - v.bias) {
				if found++; found == 2 {
					several = &SeveralError{of.image.Path, v.image.Path}
				}
				of = v
			}
		})
	}
	switch {
	case several != nil:
		return nil, several
	case found == 0 && t.fixed:
		return of, ErrOutside
	case found == 0 && len(t.files) == 0:
		return of, t.unproven
	}
	return of, nil
}

// unnamedVerdict returns the verdict on m, a file that may contain the addresses of frames without
// a module. If a frame has named a module with m's path, the result is the verdict on that module.
// It is nil if the trace has too many modules.
func (t *Trace) unnamedVerdict(m *Image) *verdict {
	return t.verdictFor(moduleKey{name: m.Path}, func(v *verdict) *Image {
		v.unnamed = m.Path
		return m
	})
}

// biasOfUnnamed finds the load bias of v's file from the addresses of frames, some of which are in
// the file.
func (t *Trace) biasOfUnnamed(v *verdict, frames []*Frame) {
	if v.biased {
		return
	}
	if v.bias, v.biased = v.image.knownBias(); v.biased {
		return
	}
	for _, f := range frames {
		if f.Symbol.Inside && len(v.image.symbols(f.Symbol.Name)) > 0 {
			v.sight(f, false)
		}
	}
	if usual := dialect.PlainBase - v.image.lowest(); len(v.seen) == 0 && v.image.Given {
		for _, f := range frames {
			if s := (sighting{addr: f.Addr, call: f.Call}); v.image.isCode(s.lookup() - usual) {
				v.sight(f, false)
				v.usual = usual
			}
		}
	}
	if t.search(v); !v.biased {
		t.infer(v, frames)
	}
}

// mayHave reports whether the addresses of frames may be in v's file. At least one address must
// follow a call in the file's code. At most one address may follow no call, be undecidable, or be
// outside the code.
func (v *verdict) mayHave(frames []*Frame) bool {
	calls, others := 0, 0
	for _, f := range frames {
		yes, known := v.image.followsCall(f.Value, f.Call)
		switch {
		case !known || !v.image.isCode(f.Value):
			others++
		case yes:
			calls++
		default:
			others++
		}
	}
	return calls > 0 && others <= 1
}
