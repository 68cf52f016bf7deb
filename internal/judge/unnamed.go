package judge

import (
	"slices"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// placeUnnamed finds the modules of frames that have only an address, such as those of glog and
// Rust, among the files that the operator or the log names. The load bias of such a file is that of
// a fixed address, or the operator gives its base, or the names of exported functions in the trace
// show it. of has the verdicts of the frames.
func (t *Trace) placeUnnamed(frames []*Frame, of []*verdict) {
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
	files, programs, fixed := t.tryUnnamed(unnamed, ofProgram)
	for i, f := range frames {
		switch {
		case f.isOfProgram() && len(programs) == 1:
			of[i] = programs[0]
		case f.isUnnamed():
			of[i], f.Place.Err = covering(f, of[i], files, fixed)
		}
	}
}

// tryUnnamed tries the files for frames without a module. It returns the files with a known load
// bias, and those in which the addresses of ofProgram may be. fixed is set if the
// operator has named a file whose load bias is known.
func (t *Trace) tryUnnamed(unnamed, ofProgram []*Frame) (files, programs []*verdict, fixed bool) {
	var tried []*verdict
	for _, m := range t.Unnamed() {
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
				programs = append(programs, v)
			}
		})
		if v.biased {
			files = append(files, v)
		}
		fixed = fixed || m.Given && v.biased
	}
	return files, programs, fixed
}

// covering returns the verdict of the only file that has the address of f. It returns nil if
// several have it, since the base of one of them is not that of this process, and of if none has
// it; that is the reason for f if fixed is set.
func covering(f *Frame, of *verdict, files []*verdict, fixed bool) (*verdict, error) {
	found := 0
	for _, v := range files {
		object.Guard(func() {
			if s := (sighting{addr: f.Addr, call: f.Call}); v.image.covers(s.lookup() - v.bias) {
				of = v
				found++
			}
		})
	}
	switch {
	case found > 1:
		return nil, nil
	case found == 0 && fixed:
		return of, ErrOutside
	}
	return of, nil
}

// unnamedVerdict returns the verdict of m, a file in which the addresses of frames without a module
// may be. If a frame names a module at the same path, it is the verdict of that module. It is nil
// if there are too many.
func (t *Trace) unnamedVerdict(m *Image) *verdict {
	return t.verdictFor(moduleKey{name: m.Path}, func(v *verdict) *Image {
		v.unnamed = m.Path
		return m
	})
}

// biasOfUnnamed finds the load bias of v's file by the addresses of frames, of which only some are
// in the file.
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

// mayHave reports whether the addresses of frames, as the file has them, can be in v's file: all
// but one of them follow a call.
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
