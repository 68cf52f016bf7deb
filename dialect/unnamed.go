package dialect

import "github.com/symfilter/symfilter/internal/object"

// withoutASLR is where Linux loads a position-independent program if addresses are not randomized:
// under gdb and setarch -R.
const withoutASLR = 0x555555554000

// placeUnnamed finds the modules of the frames that have an address alone, as those of glog and Rust,
// among the files that the operator or the log names. Such a file is loaded at a fixed address, or the
// operator gives its base, or the names of exported functions in the trace show it. of has the
// verdicts of the frames.
func (t *Trace) placeUnnamed(frames []*Frame, of []*verdict) {
	var unnamed []*Frame
	for _, f := range frames {
		if f.isUnnamed() {
			unnamed = append(unnamed, f)
		}
	}
	if len(unnamed) == 0 || t.Unnamed == nil {
		return
	}
	var files []*verdict
	for _, m := range t.Unnamed() {
		if m.Err != nil || m.File == nil {
			continue
		}
		v := t.verdictFor(moduleKey{0, m.Path}, func() *Image { return m })
		if v == nil || v.image.File == nil {
			continue
		}
		object.Guard(func() { t.biasOfUnnamed(v, unnamed) })
		if v.biased {
			files = append(files, v)
		}
	}
	for i, f := range frames {
		if !f.isUnnamed() {
			continue
		}
		for _, v := range files {
			object.Guard(func() {
				if s := (sighting{addr: f.Addr, call: f.Call}); v.image.isCode(s.lookup() - v.bias) {
					of[i] = v
				}
			})
		}
	}
}

// biasOfUnnamed finds the load bias of v's file by the addresses of frames, of which only some are in
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
	if usual := withoutASLR - v.image.lowest(); len(v.seen) == 0 && v.image.Given {
		for _, f := range frames {
			if s := (sighting{addr: f.Addr, call: f.Call}); v.image.isCode(s.lookup() - usual) {
				v.sight(f, false)
				v.usual = usual
			}
		}
	}
	work := maxBiasWork - t.worked
	v.search(&work)
	t.worked = maxBiasWork - work
}

// isUnnamed reports whether f has an address, and nothing that names its module.
func (f *Frame) isUnnamed() bool {
	return f.Place.Verified == "" && f.Place.Err == nil && f.Module == "" && f.ID.IsZero() && f.Kind == Runtime && f.Addr != 0
}
