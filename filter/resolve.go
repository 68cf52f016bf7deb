package filter

import (
	"errors"
	"time"

	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// A resolver finds the rendered answers for addresses in the Cache or, within the stream's
// patience, from the symbolizer.
type resolver struct {
	asker
	space   *space // space of the current process
	ahead   *ahead // nil until a block needs it
	now     int64  // Unix nanoseconds of the current block; 0: not read yet
	missing map[cacheModule]*symbolize.Unresolved
	bases   []Base                // load addresses that the log does not give
	missed  *symbolize.Unresolved // entry of missing that was counted last, or nil
	failed  int64                 // elements that stayed unresolved
	answerCounts
	// unresolved addresses do not count for their module: the value of a hexdict may be a number
	uncounted bool
	changed   bool // the context of the process has changed
	recent    recent
	last      answer
}

// init prepares r. If sources is set, its answers include the symbolizer's frames or variable.
func (r *resolver) init(o *Options, c *Cache, sources bool) {
	r.opt, r.cached, r.expired = o, c, expired()
	r.renderer = renderer{paths: &o.Paths, own: o.Display.Own, short: o.Display.ShortNames, sources: sources}
	r.patience = &report.Patience{Symbolizer: o.Symbolizer, Local: o.Patience.Local, Servers: o.Patience.Servers, PerMinute: o.Patience.PerMinute, Context: o.Context}
	r.recent.epoch = 1
}

// Unresolved returns at most 1,024 modules with unresolved elements, in no particular order.
// elements counts all unresolved elements, including elements outside of any module.
func (f *Filter) Unresolved() (modules []symbolize.Unresolved, elements int64) {
	for _, u := range f.missing {
		modules = append(modules, *u)
	}
	return modules, f.failed
}

// answerCounts counts answers in the log, or in the current record of Lines.
type answerCounts struct {
	answered int // addresses with a name
	pending  int // addresses without a name whose debug file is still being searched
	proofs   Proofs
	noCode   NoCode

	outcomes Outcomes
}

// An answer is the result of the lookup of one address.
type answer struct {
	mod     *module // nil: no map covers the address
	addr    uint64  // address looked up
	rel     uint64  // module-relative form of addr
	text    rendered
	hasText bool  // text is set; otherwise only the module is known
	err     error // reason why text is not set; nil if no symbol covers the address
}

// recent holds the last answers of a Filter by logged address. A hot frame then needs neither a
// search in the space nor the Cache's lock. Every change of the space clears recent. A locator's
// recent has Frame.Key as its key.
type recent struct {
	epoch uint32
	turns uint32 // the Cache's turns when the answers were copied from it
	// nil until the first lookup, which many streams never make
	slots *[1 << recentBits]recentSlot
}

type recentSlot struct {
	epoch uint32
	form  lookup
	addr  uint64 // logged address, or Frame.Key
	answer
}

const recentBits = 10 // 1,024 slots, 150 KiB

func (c *recent) slot(addr uint64, form lookup) *recentSlot {
	const golden = 0x9e3779b97f4a7c15 // spreads addresses that differ in few bits
	if c.slots == nil {
		c.slots = new([1 << recentBits]recentSlot)
	}
	return &c.slots[(addr<<2^uint64(form))*golden>>(64-recentBits)]
}

// codeAnswer returns the answer for a code address. It is valid until the next answer.
func (r *resolver) codeAnswer(addr uint64, form lookup) *answer {
	slot := r.recent.slot(addr, form)
	if slot.addr == addr && slot.form == form && slot.epoch == r.recent.epoch && r.stillBest(&slot.text) {
		r.answered++
		return &slot.answer
	}
	if turns := r.cached.turns.Load(); turns != r.recent.turns {
		r.recent = recent{epoch: 1, turns: turns}
		slot = r.recent.slot(addr, form)
	}
	r.last = r.newCodeAnswer(addr, form)
	if r.last.hasText {
		*slot = recentSlot{r.recent.epoch, form, addr, r.last}
	}
	return &r.last
}

// stillBest reports whether text may be used without a new lookup: a better debug file cannot be
// available yet.
func (r *resolver) stillBest(text *rendered) bool {
	return text.until == 0 || r.unixNow() < text.until
}

// unixNow returns the time of the current block in Unix nanoseconds.
func (r *resolver) unixNow() int64 {
	if r.now == 0 {
		r.now = time.Now().UnixNano()
	}
	return r.now
}

// forgetRecent clears recent after a change of the space.
func (r *resolver) forgetRecent() {
	r.changed = true
	if r.recent.epoch++; r.recent.epoch == 0 {
		r.recent = recent{epoch: 1, turns: r.recent.turns}
	}
}

// newCodeAnswer is codeAnswer for an address that is not in recent.
func (r *resolver) newCodeAnswer(addr uint64, form lookup) answer {
	space := r.space
	here, back := space.find(addr), interval{}
	if form != exactAddress && addr > 0 {
		back = space.find(addr - 1)
	}
	logged := form
	a, form := chooseAddress(here, back, addr, form)
	if a.mod == nil {
		if addr != 0 || logged != unspecified && logged != unspecifiedFirst { // see frameFields.empty
			r.failed++
		}
		return a
	}
	r.completeAnswer(&a, form)
	if a.hasText && a.text.back || !a.hasText && form == unspecified {
		a.addr, a.rel = a.addr-1, a.rel-1
	}
	return a
}

// dataAnswer returns the answer for a data address. It is valid until the next answer.
func (r *resolver) dataAnswer(addr uint64) *answer {
	a := &r.last
	*a = answer{addr: addr}
	v := r.space.find(addr)
	if v.mod == nil {
		r.failed++
		return a
	}
	a.mod, a.rel = v.mod, v.at(addr)
	r.completeAnswer(a, dataAddress)
	return a
}

// completeAnswer looks up a, whose module and module-relative address are set, and counts the
// result.
func (r *resolver) completeAnswer(a *answer, form lookup) {
	r.lookUp(a, form)
	r.countLookup(a)
}

// lookUp looks up a as completeAnswer does, but does not count the result, for an address that may
// be looked up again.
func (r *resolver) lookUp(a *answer, form lookup) {
	m := a.mod
	key := r.key(m, a.rel, form)
	if text, ok := r.cached.get(key); ok && r.stillBest(&text) && (!r.renderer.sources || text.none || text.sources != nil) {
		a.text, a.hasText = text, !text.none
	} else if text, ok, err := r.renderHere(m, a.rel, form); ok {
		a.text, a.hasText = r.cached.put(key, text), true
	} else if a.err = err; err == nil {
		r.cached.put(key, draft{renderedParts: renderedParts{none: true, until: r.unixNow() + int64(noneFor)}})
	}
}

// renderHere calls render for the Filter itself. A new answer may start the workers of the
// look-ahead. After a fault of the symbolizer, the unused answers of the workers are dropped.
func (r *resolver) renderHere(m *module, rel uint64, form lookup) (text draft, ok bool, err error) {
	a := r.ahead
	if a == nil || a.block == nil {
		return r.render(m, rel, form)
	}
	if a.begun || form == dataAddress || form == wholeVariable {
		text, ok, err = r.render(m, rel, form)
		a.check()
		return text, ok, err
	}
	began := time.Now()
	if text, ok, err = r.render(m, rel, form); ok {
		a.noteAnswer(time.Since(began), r.space)
	}
	return text, ok, err
}

func (r *resolver) countLookup(a *answer) {
	if a.hasText {
		r.answered++
	} else {
		r.recordMiss(a.mod, a.err)
	}
}

// recordPlace counts a raw frame that was not located: for its module in missing, or in noCode if
// no file has code at the address.
func (r *resolver) recordPlace(fr *judge.Frame) {
	k := cacheModule{id: fr.ID, name: fr.Module}
	switch m := fr.Place.Image; {
	case fr.Place.Err == judge.ErrNoCode:
		r.noCode.Add(NoCode{1, fr.Addr})
		return
	case m != nil && m.Given && k.name == "" && k.id.IsZero():
		k.name = m.Path
	}
	if u := r.countMiss(k, fr.Place.Err); u != nil {
		if file, base := fr.Candidate(); file != "" {
			u.Candidate, u.Base = file, base
		}
	}
}

func (r *resolver) recordMiss(m *module, err error) {
	r.countMiss(cacheModule{id: m.buildID(), name: m.name()}, err)
}

// countMiss counts an unresolved address. It returns the counts of its module, or nil if none are
// kept.
func (r *resolver) countMiss(k cacheModule, err error) *symbolize.Unresolved {
	r.failed++
	if errors.Is(err, symbolize.ErrPending) {
		r.pending++
	}
	if r.uncounted {
		return nil
	}
	u := r.missed
	if u == nil || u.ID != k.id || u.Name != k.name {
		u = r.missing[k]
	}
	if u == nil {
		if len(r.missing) >= maxUnresolved {
			return nil
		}
		if r.missing == nil {
			r.missing = make(map[cacheModule]*symbolize.Unresolved)
		}
		u = &symbolize.Unresolved{ID: k.id, Name: k.name}
		r.missing[k] = u
	}
	r.missed = u
	u.Frames++
	u.Err = err
	return u
}
