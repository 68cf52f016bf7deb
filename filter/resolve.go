package filter

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// lookup is how the address of an element is looked up.
type lookup uint8

const (
	exact  lookup = iota // the logged address is the code location
	before               // a return address: the call is one byte before it
	either               // not said: one byte before, or exact where only that has a line
	first                // not said, of the first frame: exact, or one byte before where only that has a line
	object               // a data address
)

func lookupOf(k markup.PCKind) lookup {
	switch k {
	case markup.Precise:
		return exact
	case markup.ReturnAddress:
		return before
	}
	return either
}

// lookupOfFrame is lookupOf for a frame of a backtrace. The two addresses
// of an unsaid form only differ in their answers where a line, an inlined call or
// a function begins. There, a first frame is the place of a fault: sanitizers
// log that, and addresses within the call for all others.
func lookupOfFrame(e markup.BT) lookup {
	if l := lookupOf(e.Kind); l != either || e.Frame > 0 {
		return l
	}
	return first
}

// resolver turns addresses into rendered answers: the cache first, then the
// symbolizer, with the stream's patience.
type resolver struct {
	opt      *Options
	cached   *Cache
	frames   []symbolize.Frame // scratch
	expired  context.Context   // asks without waiting
	patience patience
	now      int64 // Unix nanoseconds, when the block at work came
	missing  map[cacheModule]*Unresolved
	failed   int64 // elements that stayed unresolved
	recent   recent
	last     answer
	renderer renderer
}

func (r *resolver) init(o *Options, c *Cache) {
	r.opt, r.cached = o, c
	r.recent.epoch = 1
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r.expired = ctx
}

// Unresolved is a module with frames that stayed without a name.
type Unresolved struct {
	ID     buildid.ID
	Name   string // as logged
	Frames int64  // elements that stayed unresolved
	Err    error  // the last reason; nil: its file was found, no symbol covers the address
}

// Unresolved returns the modules that stayed unresolved, at most 1,024 and in
// no order, and the number of all elements that did, those outside any module
// included.
func (f *Filter) Unresolved() (modules []Unresolved, elements int64) {
	for _, u := range f.missing {
		modules = append(modules, *u)
	}
	return modules, f.failed
}

// answer is what is known about one address.
type answer struct {
	mod   *module // nil: no map covers the address
	addr  uint64  // as looked up
	rel   uint64  // module-relative, of addr
	text  rendered
	knows bool  // text is there: more than the module is known
	err   error // why not; nil: its file was found, no symbol covers the address
}

// recent holds the last answers of a Filter by address, so that a hot frame
// costs neither a search of the space nor the shared Cache's lock. Every
// change of the space empties it.
type recent struct {
	epoch uint32
	turns uint32 // of the Cache that the answers are in
	slots [1 << recentBits]recentSlot
}

type recentSlot struct {
	epoch uint32
	form  lookup
	addr  uint64 // as logged
	answer
}

const recentBits = 10 // 1,024 slots, 150 KiB

func (c *recent) slot(addr uint64, form lookup) *recentSlot {
	const golden = 0x9e3779b97f4a7c15 // spreads addresses that differ in few bits
	return &c.slots[(addr<<2^uint64(form))*golden>>(64-recentBits)]
}

// code resolves a code address of the process. The answer is good until the
// next one.
func (f *Filter) code(addr uint64, form lookup) *answer {
	slot := f.recent.slot(addr, form)
	if slot.addr == addr && slot.form == form && slot.epoch == f.recent.epoch && f.good(&slot.text) {
		return &slot.answer
	}
	if turns := f.cache.turns.Load(); turns != f.recent.turns {
		f.recent = recent{epoch: 1, turns: turns}
		slot = f.recent.slot(addr, form)
	}
	f.last = f.codeOf(addr, form)
	if f.last.knows {
		*slot = recentSlot{f.recent.epoch, form, addr, f.last}
	}
	return &f.last
}

// good reports whether an answer is still the best there is to know.
func (r *resolver) good(text *rendered) bool {
	return text.until == 0 || r.now < text.until
}

// forgetRecent is called when the space changes.
func (f *Filter) forgetRecent() {
	if f.recent.epoch++; f.recent.epoch == 0 {
		f.recent = recent{epoch: 1, turns: f.recent.turns}
	}
}

// codeOf resolves the address anew. Where the form leaves a choice, and the
// two addresses are not neighbours in one module, the logged one is taken: no
// call ends at the beginning of a module.
func (f *Filter) codeOf(addr uint64, form lookup) answer {
	space := &f.process.space
	here, back := space.find(addr), interval{}
	if form != exact && addr > 0 {
		back = space.find(addr - 1)
	}
	one := here.mod != nil && here.mod == back.mod && here.at(addr) == back.at(addr-1)+1
	switch {
	case form == exact, form != before && !one && here.mod != nil:
		form = exact
	case form == before, !one:
		form = before
		here = back
	}
	a := answer{addr: addr, mod: here.mod}
	if form == before && addr > 0 {
		a.addr--
	}
	if here.mod == nil {
		f.failed++
		return a
	}
	a.rel = here.at(a.addr)
	if form == before {
		form = exact // by now
	}
	f.answer(&a, form)
	if form != exact && (!a.knows || a.text.back) {
		a.addr, a.rel = a.addr-1, a.rel-1
	}
	return a
}

// data resolves a data address of the process.
func (f *Filter) data(addr uint64) *answer {
	a := &f.last
	*a = answer{addr: addr}
	v := f.process.space.find(addr)
	if v.mod == nil {
		f.failed++
		return a
	}
	a.mod, a.rel = v.mod, v.at(addr)
	f.answer(a, object)
	return a
}

// answer completes a, whose module and module-relative address are known.
func (r *resolver) answer(a *answer, form lookup) {
	m := a.mod
	if m.cached == 0 {
		m.cached = r.cached.module(m.buildID, m.name)
	}
	key := cacheKey{a.rel, m.cached, form}
	if a.text, a.knows = r.cached.get(key); a.knows && r.good(&a.text) && (r.opt.Output != JSON || a.text.sources != nil) {
		return
	}
	if a.text, a.knows, a.err = r.render(m, a.rel, form); a.knows {
		a.text = r.cached.put(key, a.text)
	} else {
		r.note(m, a.err)
	}
}

// render asks the symbolizer; ok is false when nothing is known, with the
// reason if there is one. The answer is good until the next one.
func (r *resolver) render(m *module, rel uint64, form lookup) (text rendered, ok bool, err error) {
	if r.opt.Symbolizer == nil {
		return text, false, nil
	}
	l := symbolize.Location{ID: m.buildID, Name: m.name, Addr: rel}
	if form == object {
		v, err := r.variable(m, l)
		if err != nil || v.Name == "" {
			return text, false, err
		}
		if plain, ok := unversioned(v.Linkage); ok {
			v.Name = r.opt.Symbolizer.Demangle(plain)
		}
		return renderVariable(v, r.opt), true, nil
	}
	frames, back, err := r.choose(m, l, form)
	if err != nil || len(frames) == 0 {
		return text, false, err
	}
	if back {
		l.Addr--
	}
	return r.renderer.frames(frames, m, l.Addr, back, r.opt), true, nil
}

// choose asks for the frames at l, or, as form says, one byte before it.
func (r *resolver) choose(m *module, l symbolize.Location, form lookup) (frames []symbolize.Frame, back bool, err error) {
	if form == exact {
		frames, err = r.code(m, l)
		return frames, false, err
	}
	prior := l
	prior.Addr--
	frames, err = r.code(m, prior)
	if err != nil {
		return nil, false, err
	}
	line := len(frames) > 0 && frames[0].Line != 0
	if form == either && line {
		return frames, true, nil
	}
	frames = slices.Clone(frames)
	here, err := r.code(m, l)
	switch {
	case err != nil || len(here) == 0:
		return frames, true, nil
	case len(frames) == 0:
		return here, false, nil
	case form == first && (here[0].Line != 0 || !line):
		return here, false, nil
	case form == either && here[0].Line != 0 && here[len(here)-1].Func == frames[len(frames)-1].Func:
		return here, false, nil
	}
	return frames, true, nil
}

// unversioned returns a symbol's name without its version, memcpy for
// memcpy@@GLIBC_2.14: debug files have it, and stripped libraries have not.
func unversioned(name string) (string, bool) {
	i := strings.IndexByte(name, '@')
	if i <= 0 || name[0] == '?' { // MSVC mangles with @
		return name, false
	}
	return name[:i], true
}

// code asks for the frames at l, which are the resolver's until the next call.
func (r *resolver) code(m *module, l symbolize.Location) ([]symbolize.Frame, error) {
	frames, err := r.opt.Symbolizer.Code(r.expired, r.frames[:0], l)
	if errors.Is(err, symbolize.ErrPending) {
		r.wait(m, func(ctx context.Context) error {
			frames, err = r.opt.Symbolizer.Code(ctx, r.frames[:0], l)
			return err
		})
	} else {
		r.patience.settled(m)
	}
	r.frames = frames[:0]
	if len(frames) > 0 && errors.Is(err, symbolize.ErrPending) {
		err = nil // of a file without debug information: the best there is for now
	}
	if n := len(frames); n > 0 && frames[n-1].FromSymbol {
		if plain, ok := unversioned(frames[n-1].Linkage); ok {
			frames[n-1].Func = r.opt.Symbolizer.Demangle(plain)
		}
	}
	return frames, err
}

func (r *resolver) variable(m *module, l symbolize.Location) (symbolize.Variable, error) {
	v, err := r.opt.Symbolizer.Data(r.expired, l)
	if errors.Is(err, symbolize.ErrPending) {
		r.wait(m, func(ctx context.Context) error {
			v, err = r.opt.Symbolizer.Data(ctx, l)
			return err
		})
	} else {
		r.patience.settled(m)
	}
	if v.Name != "" && errors.Is(err, symbolize.ErrPending) {
		err = nil
	}
	return v, err
}

// note remembers that an element in m stayed unresolved.
func (r *resolver) note(m *module, err error) {
	r.failed++
	k := cacheModule{m.buildID, m.name}
	u := r.missing[k]
	if u == nil {
		if len(r.missing) >= maxUnresolved {
			return
		}
		if r.missing == nil {
			r.missing = make(map[cacheModule]*Unresolved)
		}
		u = &Unresolved{ID: m.buildID, Name: m.name}
		r.missing[k] = u
	}
	u.Frames++
	u.Err = err
}
