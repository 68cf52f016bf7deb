package judge

import (
	"slices"

	"github.com/symfilter/symfilter/internal/object"
)

// A mapping at a predictable address may belong to another program: all programs that are not
// position-independent are loaded at the same address. The maps of the process that wrote the trace
// may never have been read. Each stack therefore has to prove the mapping, as return addresses
// prove a load bias: see [Inference]. No bias is searched, so six return addresses are enough, or
// fewer if calls lead from one to the next.

// proveMaps sets the modules of frames at predictable addresses if their stacks prove the mappings
// there. It leaves other frames to be judged without a mapping.
func (t *Trace) proveMaps(frames []*Frame) {
	if !slices.ContainsFunc(frames, func(f *Frame) bool { return f.likely != nil }) {
		return
	}
	state, from, number := t.stack, 0, 0
	for i, f := range frames {
		state.next(f)
		if i > 0 && state.Stack != number {
			t.proveMapsOfStack(frames[from:i])
			from = i
		}
		number = state.Stack
	}
	t.proveMapsOfStack(frames[from:])
}

func (t *Trace) proveMapsOfStack(stack []*Frame) {
	var addresses []*Frame
	for _, f := range stack {
		if f.Addr != 0 && !f.Data && f.Kernel == nil {
			addresses = append(addresses, f)
		}
	}
	addresses = addresses[:min(len(addresses), maxWeighed)]
	for i, f := range stack {
		m := f.likely
		if m == nil {
			continue
		}
		proved := t.provesMap(f, addresses)
		for _, other := range stack[i:] {
			if o := other.likely; o != nil && o.ID == m.ID && o.Path == m.Path && o.Base == m.Base {
				if other.likely = nil; proved {
					other.setMap(o)
				}
			}
		}
	}
}

// provesMap reports whether the return addresses in a stack prove f.likely, the mapping at f's
// address.
func (t *Trace) provesMap(f *Frame, stack []*Frame) (yes bool) {
	m, mapped := f.likely, *f.Frame
	mapped.ID = m.ID
	if mapped.Module == "" {
		mapped.Module = m.Path
	}
	key := keyOf(&mapped)
	key.base = m.Base
	v := t.verdictOfModule(key, &mapped, m)
	if v == nil || v.image.Err != nil || v.image.File == nil {
		return false
	}
	e := election{trace: t, image: v.image, frames: stack, voters: votersOf(stack)}
	e.weighAlike()
	t.quota().Spend(len(stack) * stepsPerFrame)
	object.Guard(func() {
		in := e.weigh(candidate{bias: m.Bias})
		yes = in.proves()
	})
	return yes
}
