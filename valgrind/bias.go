package valgrind

import (
	"debug/elf"
	"encoding/binary"
	"slices"

	"github.com/symfilter/symfilter/internal/object"
)

// What a fact says for a bias or against it, as the logarithm to base 2 of how
// much likelier the fact is at the true one than at another.
const (
	forCall     = 7  // a call ends where it must; so it does at one in a thousand other places
	againstCall = -5 // signal handlers and what they interrupt are no callers: 2 % of frames
	forTarget   = 9  // the call is to the very function that was called
	forName     = 5  // the function has the name that it must have
	againstName = -6
	forData     = 10 // so has the variable
	againstGap  = -3 // the address is in no function that unwinding knows
	prior       = 6  // Valgrind loads programs and the dynamic linker at the same place, as a rule
	margin      = 6  // one in 64 is no guess that anybody may see as an answer
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
	files    *files
	maps     []Map
	demangle func(string) string
}

// solve looks for the place of an epoch. It reports whether it is known.
func (s *solver) solve(e *epoch) bool {
	if e.located {
		return true
	}
	facts := len(e.ips) + len(e.names)
	if e.stale || facts == 0 || facts == e.tried || e.tried > 64 && facts < e.tried+e.tried/4 {
		return false
	}
	e.tried = facts
	f := s.files.of(e.of.name)
	if f.err != nil {
		return false
	}
	f.safely(func() { s.choose(e, f) })
	if f.err != nil {
		e.located = false
	}
	return e.located
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
	ahead := lead(all)
	by := byFacts
	for i := range all {
		if all[i].bias == usual {
			all[i].score += prior
		}
	}
	if with := lead(all); with != ahead {
		if ahead < margin {
			by = byPrior
		}
		ahead = with
	}
	e.left = len(all)
	if ahead < margin || all[0].score < 0 {
		e.stale = ahead >= margin && stale(e, f, all[0].bias)
		return
	}
	if e.stale = stale(e, f, all[0].bias); !e.stale {
		e.locate(all[0].bias, by)
	}
}

func (e *epoch) locate(bias uint64, by string) {
	e.located, e.bias, e.by = true, bias, by
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

// lead sorts the best to the front, and returns how far it is ahead.
func lead(all []candidate) int {
	slices.SortStableFunc(all, func(a, b candidate) int { return b.score - a.score })
	if len(all) == 1 {
		return margin
	}
	return all[0].score - all[1].score
}

// score returns the candidates that are not far behind the best.
func (s *solver) score(all []candidate, e *epoch, f *file) []candidate {
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
	for _, n := range e.names {
		named := f.named(n.fn, s.demangle)
		if len(named) == 0 {
			continue
		}
		for i := range all {
			rel := n.ip - all[i].bias
			if slices.ContainsFunc(named, func(s object.Symbol) bool { return rel-s.Addr < max(1, s.Size) }) {
				all[i].score += forName
			} else {
				all[i].score += againstName
			}
		}
	}
}

// scoreCode asks whether calls and functions are where they must be.
func scoreCode(facts []ipFact, f *file, bias uint64) (score int) {
	for _, fact := range facts {
		rel := fact.ip - bias
		if fact.caller {
			is, known := f.elf.CallEndsAt(rel + 1)
			switch {
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
		if _, _, ok := f.elf.UnwindRange(rel); !ok && f.unwinds() {
			score += againstGap
		}
	}
	return score
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
		case is:
			calls++
			all++
		default:
			all++
		}
	}
	return all >= 3 && calls*2 < all || all >= 10 && calls*5 < all*4
}
