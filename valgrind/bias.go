package valgrind

import (
	"debug/elf"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

// What a fact says for a bias or against it, as the logarithm to base 2 of how
// much likelier the fact is at the true one than at another. Of the places in
// code, one in 25 is behind a call.
const (
	forCall     = 4
	againstCall = -5 // signal handlers, and what they interrupt, are no callers: 2 % of frames
	forRequest  = 8  // code of Valgrind's own asks Valgrind for something
	forTarget   = 9  // the call is to the very function that was called
	againstName = -8 // the function must have another name; in favour: nameBits
	forLine     = 9  // so has its line
	forData     = 10 // so has the variable
	againstGap  = -3 // the address is in no function that unwinding knows
	overlap     = -8 // another object is there
	prior       = 10 // Valgrind loads programs and the dynamic linker at the same place, as a rule
	margin      = 8  // all other biases together are less likely than one in 256
)

// Where Valgrind loads a program that can be loaded anywhere, and the dynamic
// linker (coregrind/m_ume/elf.c, m_aspacemgr).
const (
	mainBias   = 0x108000
	linkerBias = 0x4000000
)

// How a bias is known.
const (
	byMap      = "map"      // it was given
	byFile     = "file"     // the program can only be loaded where it says
	bySegments = "segments" // no other puts the addresses into code
	byFacts    = "facts"    // the file's symbols, calls and unwind information
	byPrior    = "prior"    // as by facts, and it is where Valgrind loads such objects
)

// stages of facts: candidates that are far behind after one are dropped.
const (
	stageSize = 16 // addresses
	dropped   = 40 // behind the best
)

type candidate struct {
	bias  uint64
	score int
}

// solver finds the biases of a process's objects.
type solver struct {
	maps     []Map
	demangle func(string) string
	answers  *answerer // nil: nobody is asked what code at an address is
	work     int       // done so far: facts that candidates were held against
}

// solve looks for the place of an epoch. It reports whether it is known.
func (s *solver) solve(e *epoch) bool {
	if e.located {
		return true
	}
	facts, known := len(e.ips)+len(e.names), e.of.proc.located
	few := e.tried > 8 && facts < e.tried+e.tried/4
	if e.stale || facts == 0 || known == e.triedWith && (facts == e.tried || few) {
		return false
	}
	e.tried, e.triedWith = facts, known
	f := e.of.file
	if f.err != nil {
		return false
	}
	f.safely(func() { s.choose(e, f) })
	if f.err != nil {
		e.located = false
	}
	return e.located
}

// solveAll looks for the places of all objects of a process. Each that is found
// is one where others are not.
func (s *solver) solveAll(p *process) {
	for before := -1; p.located != before; {
		before = p.located
		for _, o := range p.order {
			for _, e := range o.epochs {
				s.solve(e)
			}
		}
	}
}

func (s *solver) choose(e *epoch, f *file) {
	if bias, ok := s.given(e, f); ok {
		e.locate(bias, byMap)
		return
	}
	if f.elf.Type == elf.ET_EXEC {
		if e.stale = !inAny(e.windows, 0) || stale(e, f, 0); !e.stale {
			e.locate(0, byFile)
		}
		return
	}
	all, ok := candidates(e.windows)
	e.left = len(all)
	switch {
	case !ok:
		return
	case len(all) == 1:
		if e.stale = stale(e, f, all[0].bias); !e.stale {
			e.locate(all[0].bias, bySegments)
		}
		return
	}
	usual := uint64(1) // no page
	switch {
	case e.of.proc.isMain(e.of):
		usual = mainBias
	case isLinker(e.of.name):
		usual = linkerBias
	}
	all = s.score(all, e, f)
	by := byFacts
	sure := lead(all) >= margin
	if !sure && s.answers != nil {
		all = s.scoreLines(all, e, f)
		sure = lead(all) >= margin
	}
	if !sure {
		by = byPrior
		for i := range all {
			if all[i].bias == usual {
				all[i].score += prior
			}
		}
		sure = lead(all) >= margin
	}
	e.left = len(all)
	best := all[0]
	e.stale = sure && stale(e, f, best.bias)
	if sure && !e.stale {
		e.locate(best.bias, by)
	}
}

func (e *epoch) locate(bias uint64, by string) {
	e.located, e.bias, e.by = true, bias, by
	e.of.proc.located++
	e.seen, e.named, e.ips, e.names = nil, nil, nil, nil
}

// given returns the bias that a map says, if the epoch's addresses agree.
func (s *solver) given(e *epoch, f *file) (uint64, bool) {
	for i := range s.maps {
		if bias, ok := s.maps[i].bias(e.of.name, f); ok && inAny(e.windows, bias) {
			return bias, true
		}
	}
	return 0, false
}

func inAny(all []window, bias uint64) bool {
	return slices.ContainsFunc(all, func(w window) bool { return w.from <= bias && bias <= w.to })
}

func isLinker(name string) bool {
	b := base(name)
	return len(b) > 3 && b[:3] == "ld-" || len(b) > 5 && b[:5] == "ld.so" || len(b) > 4 && b[:4] == "ld64"
}

// candidates returns the biases in the windows; ok is false where there are too
// many.
func candidates(windows []window) (all []candidate, ok bool) {
	for _, w := range windows {
		for b := w.from; ; b += page {
			if len(all) >= maxBiases {
				return nil, false
			}
			all = append(all, candidate{bias: b})
			if b >= w.to {
				break
			}
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return compare(a.bias, b.bias) })
	return slices.CompactFunc(all, func(a, b candidate) bool { return a.bias == b.bias }), true
}

func compare(a, b uint64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// lead sorts the best to the front, and returns the logarithm to base 2 of how
// much likelier it is than all others together.
func lead(all []candidate) float64 {
	slices.SortStableFunc(all, func(a, b candidate) int { return b.score - a.score })
	others := 0.0
	for _, c := range all[1:] {
		others += math.Exp2(float64(c.score - all[0].score))
	}
	return -math.Log2(others)
}

// score returns the candidates that are not far behind the best.
func (s *solver) score(all []candidate, e *epoch, f *file) []candidate {
	if s.work > maxWork {
		return all
	}
	s.work += len(all) * min(len(e.ips)+len(e.names), 2*stageSize)
	s.scoreOverlaps(all, e, f)
	s.scoreData(all, e, f)
	s.scoreNames(all, e, f)
	for from := 0; from < len(e.ips); from += stageSize {
		part := e.ips[from:min(len(e.ips), from+stageSize)]
		for i := range all {
			all[i].score += scoreCode(part, f, all[i].bias)
		}
		lead(all)
		all = slices.DeleteFunc(all, func(c candidate) bool { return c.score < all[0].score-dropped })
		if len(all) == 1 {
			break
		}
	}
	return all
}

// scoreOverlaps asks which candidates leave the other objects where they are.
// One that was unloaded may lie in the same place.
func (s *solver) scoreOverlaps(all []candidate, e *epoch, f *file) {
	for _, o := range e.of.proc.order {
		for _, other := range o.epochs {
			if !other.located || o == e.of {
				continue
			}
			g := o.file
			for i := range all {
				if overlaps(f, all[i].bias, g, other.bias) {
					all[i].score += overlap
				}
			}
		}
	}
}

func (s *solver) scoreData(all []candidate, e *epoch, f *file) {
	for _, d := range e.of.proc.data {
		for _, sym := range f.elf.SymbolsNamed(d.name) {
			for i := range all {
				if all[i].bias == d.addr-d.offset-sym.Addr {
					all[i].score += forData
				}
			}
		}
	}
}

// scoreNames asks where the functions are that the report names. A name that
// the file does not have says nothing: inlined, or known from debug
// information only.
func (s *solver) scoreNames(all []candidate, e *epoch, f *file) {
	byName := make(map[string][]uint64) // the addresses of a function say the same: they count as one
	for _, n := range e.names {
		byName[n.fn] = append(byName[n.fn], n.ip)
	}
	for fn, ips := range byName {
		named := f.named(fn, s.demangle)
		if len(named) == 0 {
			continue
		}
		favour, against := nameBits(named), againstName
		if fn == "(below main)" && !f.hasSymtab() { // it may be another of those that are called so
			against = 0
		}
		for i := range all {
			if inside(named, ips, all[i].bias) {
				all[i].score += favour
			} else {
				all[i].score += against
			}
		}
	}
}

// hasSymtab reports whether the file has the names of all its functions.
func (f *file) hasSymtab() bool {
	_, ok := f.elf.Section(".symtab")
	return ok
}

// scoreLines asks the symbolizer which functions and lines are at the
// addresses of which the report says that, until one candidate is ahead.
func (s *solver) scoreLines(all []candidate, e *epoch, f *file) []candidate {
	if len(all) > maxAsked {
		return all
	}
	asked := 0
	for _, n := range e.names {
		if asked++; asked > maxAsked/16 || lead(all) >= margin {
			break
		}
		for i := range all {
			frames := s.answers.code(e, symbolize.Location{ID: f.id, Name: f.path, Addr: n.ip - all[i].bias})
			all[i].score += n.agreement(frames)
		}
		lead(all)
		all = slices.DeleteFunc(all, func(c candidate) bool { return c.score < all[0].score-2*margin })
	}
	return all
}

// agreement says how an answer speaks for the fact.
func (n *nameFact) agreement(frames []symbolize.Frame) int {
	if len(frames) == 0 {
		return 0
	}
	outer := &frames[len(frames)-1]
	plain, _, _ := strings.Cut(outer.Linkage, "@")
	named := closed(outer.Func) == closed(n.fn) || outer.Linkage == n.fn || plain == n.fn || n.fn == "(below main)" && belowMain[plain]
	switch line := n.line != 0 && uint64(outer.Line) == n.line && base(outer.File) == n.file; {
	case line:
		return forLine
	case named:
		return forLine / 2
	case outer.HasLine == (n.line != 0):
		return againstName
	}
	return 0 // a symbol that reaches too far, or another of its names
}

// nameBits returns what it says for a candidate that an address is in one of
// these symbols: the more, the smaller they are.
func nameBits(named []object.Symbol) int {
	size := uint64(0)
	for i := range named {
		size += min(page, max(1, named[i].Size))
	}
	return max(1, min(8, bits.Len64(page/min(page, size))-1))
}

// inside reports whether every address is in one of the symbols.
func inside(named []object.Symbol, ips []uint64, bias uint64) bool {
	for _, ip := range ips {
		if !slices.ContainsFunc(named, func(s object.Symbol) bool { return ip-bias-s.Addr < max(1, s.Size) }) {
			return false
		}
	}
	return true
}

// scoreCode asks whether calls and functions are where they must be.
func scoreCode(facts []ipFact, f *file, bias uint64) (score int) {
	for _, fact := range facts {
		rel := fact.ip - bias
		if fact.caller {
			is, known := f.elf.CallEndsAt(rel + 1)
			switch {
			case f.asks(rel + 1):
				score += forRequest
			case !known:
			case !is:
				score += againstCall
			default:
				score += forCall
				if fact.inner != 0 && f.calls(rel+1, fact.inner-bias) {
					score += forTarget
				}
			}
		}
		if !fact.caller && f.asks(rel) {
			score += forRequest
		}
		if _, _, ok := f.elf.UnwindRange(rel); !ok && f.unwinds() {
			score += againstGap
		}
	}
	return score
}

// asks reports whether the code that ends at addr is a request of Valgrind's
// own library to Valgrind (valgrind.h), as its functions in place of malloc and
// others make.
func (f *file) asks(addr uint64) bool {
	if !f.ours {
		return false
	}
	code := ""
	switch f.elf.Machine {
	case elf.EM_X86_64:
		code = "\x48\xc1\xc7\x33\x48\x87\xdb" // rol $51, %rdi; xchg %rbx, %rbx
	case elf.EM_386:
		code = "\xc1\xc7\x13\x87\xdb" // roll $19, %edi; xchgl %ebx, %ebx
	case elf.EM_AARCH64:
		code = "\x4a\x01\x0a\xaa" // orr x10, x10, x10
	default:
		return false
	}
	b := f.elf.Loaded(addr - uint64(len(code)))
	return len(b) >= len(code) && string(b[:len(code)]) == code
}

// unwinds reports whether the file says where its functions begin and end.
func (f *file) unwinds() bool {
	_, ok := f.elf.Section(".eh_frame")
	return ok
}

// calls reports whether the call that ends at addr is a direct one to the
// beginning of the function at callee.
func (f *file) calls(addr, callee uint64) bool {
	start, _, ok := f.elf.UnwindRange(callee)
	if !ok || f.elf.Machine != elf.EM_X86_64 && f.elf.Machine != elf.EM_386 {
		return false
	}
	code := f.elf.Loaded(addr - 5)
	if len(code) < 5 || code[0] != 0xe8 {
		return false
	}
	return addr+uint64(int64(int32(binary.LittleEndian.Uint32(code[1:])))) == start
}

// stale reports whether the file cannot be the one that ran: at this bias too
// few of the callers follow a call.
func stale(e *epoch, f *file, bias uint64) bool {
	calls, all := 0, 0
	for _, fact := range e.ips {
		if !fact.caller {
			continue
		}
		switch is, known := f.elf.CallEndsAt(fact.ip - bias + 1); {
		case !known:
		case is || f.asks(fact.ip-bias+1):
			calls++
			all++
		default:
			all++
		}
	}
	return all >= 3 && calls*2 < all || all >= 10 && calls*5 < all*4
}
