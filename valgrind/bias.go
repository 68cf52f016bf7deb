package valgrind

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// Scores of facts: how much a fact supports a bias. A score is the base-2 logarithm of a ratio:
// the fact's probability at the true load bias to its probability at a wrong bias. forCall is 4
// because about one in 25 addresses in code follows a call.
const (
	forCall     = 4
	againstCall = -5 // 2 % of the frames that look like callers are not callers
	forSignal   = 10 // a signal handler ends at the address; a file has one or two
	forRequest  = 8  // a preloaded library of Valgrind makes a client request at the address
	forTarget   = 9  // the call is to the function of the next inner frame
	// score if the address is in a function with another name; nameBits scores the right name
	againstName = -8
	forLine     = 9  // the symbolizer returns the report's line for the address
	forData     = 10 // the variable is at the address in the report
	againstGap  = -3 // the unwind information has no function at the address
	overlap     = -8 // another located object overlaps this one
	prior       = 10 // the bias is the object's usualBias
	// minimum lead: the best bias is then 256 times as probable as all others together
	margin = 8
)

// Biases that Valgrind chooses for position-independent programs and for the dynamic linker
// (coregrind/m_ume/elf.c, m_aspacemgr).
const (
	mainBias   = 0x108000
	linkerBias = 0x4000000
)

// Sources of a bias: see epoch.by.
const (
	byMap      = "map"      // from a Map
	byFile     = "file"     // the program can be loaded at one address only
	bySegments = "segments" // no other bias puts all addresses into code
	byFacts    = "facts"    // from the file's symbols, calls and unwind information
	byPrior    = "prior"    // from facts, and because Valgrind usually loads such objects there
)

// Costs in units of work, and limits of the search. One comparison of an address with a candidate
// is a unit.
const (
	stageSize    = 8   // addresses compared between two rounds of dropping candidates
	dropped      = 40  // a candidate this far below the best score is dropped
	askedWork    = 128 // units for a lookup by the symbolizer
	demangleWork = 4   // units to demangle a name
	symbolSize   = 512 // bytes of symbol tables that are searched for one unit
)

// A candidate is a possible load bias of an epoch, with its scores.
type candidate struct {
	bias  uint64
	code  int32 // score of the epoch's addresses
	lines int32 // score of the symbolizer's functions and lines
	score int   // score of all facts, at the last try
}

const candidateSize = 24 // bytes

// A solver finds the biases of a process's objects.
type solver struct {
	maps     []Map
	demangle func(string) string
	answers  *answerer // nil if there is no symbolizer
	work     int       // units of work so far
	allowed  int
}

// spendWork adds n units of work. If the limit is already exceeded, it adds nothing and returns
// false.
func (s *solver) spendWork(n int) bool {
	if s.work > s.allowed {
		return false
	}
	s.work += n
	return true
}

// demangledName returns a symbol's name in the form that reports have, and counts the work.
func (s *solver) demangledName(name string) string {
	s.work += demangleWork
	return s.demangle(name)
}

// solveEpoch searches for the bias of an epoch, and reports whether the bias is known.
func (s *solver) solveEpoch(e *epoch) bool {
	if e.located {
		return true
	}
	facts, known := len(e.ips)+len(e.names), len(e.of.proc.places)
	few := e.tried > 8 && facts < e.tried+e.tried/4
	if e.stale || facts == 0 || known == e.triedWith && (facts == e.tried || few) {
		return false
	}
	e.tried, e.triedWith = facts, known
	f := e.of.file
	if f.Err != nil {
		return false
	}
	f.safely(func() { s.chooseBias(e, f) })
	if f.Err != nil {
		e.located = false
	}
	return e.located
}

// solveAll searches for the biases of all objects, in rounds: each located object may help to
// locate others. It stops after a round that locates no object. Then it marks each file that is
// still doubted as not the file that ran.
func (s *solver) solveAll(p *process) {
	for before := -1; len(p.places) != before; {
		before = len(p.places)
		for _, o := range p.order {
			for _, e := range o.epochs {
				s.solveEpoch(e)
			}
		}
	}
	for _, o := range p.order {
		for _, e := range o.epochs {
			e.stale = e.stale || e.doubted
		}
	}
}

func (s *solver) chooseBias(e *epoch, f *file) {
	if bias, ok := s.mapBias(e, f); ok {
		e.locate(bias, byMap)
		return
	}
	if f.Image.Type == elf.ET_EXEC {
		if e.stale = !isInAny(e.windows, 0); !e.stale {
			e.checkBias(f, 0, byFile)
		}
		return
	}
	doubtful := e.mayBeData(f)
	if w := e.windows; len(w) == 1 && w[0].from == w[0].to && !doubtful {
		e.checkBias(f, w[0].from, bySegments)
		return
	}
	if !e.narrowCandidates() {
		return
	}
	if !s.scoreFacts(e, f) {
		return
	}
	by := byFacts
	sure := lead(e.left) >= margin
	if !sure && s.answers != nil {
		sure = s.scoreLines(e, f)
	}
	if !sure {
		by = byPrior
		usual := e.of.usualBias()
		for i := range e.left {
			if e.left[i].bias == usual {
				e.left[i].score += prior
			}
		}
		sure = lead(e.left) >= margin
	}
	if sure && !(doubtful && e.left[0].score < margin) {
		e.checkBias(f, e.left[0].bias, by)
	}
}

// usualBias returns the bias at which Valgrind usually loads an object, or 1, which is never a
// bias.
func (o *loaded) usualBias() uint64 {
	switch {
	case o.proc.isMain(o):
		return mainBias
	case isLinker(o.name):
		return linkerBias
	}
	return 1
}

// locate sets the bias of an epoch, and drops the facts that led to it.
func (e *epoch) locate(bias uint64, by string) {
	e.located, e.bias, e.by = true, bias, by
	e.of.proc.places = append(e.of.proc.places, e)
	e.seen, e.named, e.ips, e.names, e.left = nil, nil, nil, nil, nil
	e.of.proc.keepBytes(-e.kept)
	e.kept = 0
}

// keepBytes charges size bytes of memory to e. It returns false if they would exceed a limit.
func (e *epoch) keepBytes(size int) bool {
	ok := e.of.proc.keepBytes(size)
	if ok {
		e.kept += size
	}
	return ok
}

func (e *epoch) dropCandidates(out func(candidate) bool) {
	before := len(e.left)
	e.left = slices.DeleteFunc(e.left, out)
	e.keepBytes((len(e.left) - before) * candidateSize)
}

// mapBias returns the bias that a Map gives for the epoch's object, if that bias puts the addresses
// of the epoch into the object.
func (s *solver) mapBias(e *epoch, f *file) (uint64, bool) {
	for i := range s.maps {
		if bias, ok := s.maps[i].bias(e.of.name, f); ok && (isInAny(e.windows, bias) || e.loadedAt(f, bias)) {
			return bias, true
		}
	}
	return 0, false
}

func isInAny(all []window, bias uint64) bool {
	return slices.ContainsFunc(all, func(w window) bool { return w.from <= bias && bias <= w.to })
}

func isLinker(name string) bool {
	b := baseName(name)
	return len(b) > 3 && b[:3] == "ld-" || len(b) > 5 && b[:5] == "ld.so" || len(b) > 4 && b[:4] == "ld64"
}

// narrowCandidates drops candidates outside the windows. If none are left, it makes one for
// each bias in the windows. It returns false if these are too many, or if there is no memory
// for them.
func (e *epoch) narrowCandidates() bool {
	e.dropCandidates(func(c candidate) bool { return !isInAny(e.windows, c.bias) })
	if len(e.left) > 0 {
		return true
	}
	e.counted, e.asked = 0, 0
	n := e.places()
	if n > maxBiases || !e.keepBytes(n*candidateSize) {
		return false
	}
	all := make([]candidate, 0, n)
	for _, w := range e.windows {
		for i := range (w.to-w.from)/page + 1 {
			all = append(all, candidate{bias: w.from + i*page})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int { return cmp.Compare(a.bias, b.bias) })
	e.left = slices.CompactFunc(all, func(a, b candidate) bool { return a.bias == b.bias })
	e.keepBytes((len(e.left) - n) * candidateSize)
	return true
}

// places returns the number of biases that an epoch may have.
func (e *epoch) places() (n int) {
	if len(e.left) > 0 {
		return len(e.left)
	}
	for _, w := range e.windows {
		n += int(min((w.to-w.from)/page, maxBiases)) + 1
	}
	return n
}

// lead sorts the candidates, best first. It returns the base-2 logarithm of a ratio: the best
// probability, divided by the sum of all others.
func lead(all []candidate) float64 {
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	others := 0.0
	for _, c := range all[1:] {
		others += math.Exp2(float64(c.score - all[0].score))
	}
	return -math.Log2(others)
}

// scoreFacts compares the candidates with new addresses, and drops bad candidates early. It
// returns false if the work limit is exceeded.
func (s *solver) scoreFacts(e *epoch, f *file) bool {
	for e.counted < len(e.ips) {
		part := e.ips[e.counted:min(len(e.ips), e.counted+stageSize)]
		if !s.spendWork(len(e.left) * len(part)) {
			return false
		}
		e.counted += len(part)
		best := int32(math.MinInt32)
		for i := range e.left {
			c := &e.left[i]
			c.code += e.scoreCalls(part, f, c.bias)
			best = max(best, c.code)
		}
		e.dropCandidates(func(c candidate) bool { return c.code < best-dropped })
		if f.hasUnwindInfo() { // slower, so only for the remaining candidates
			for i := range e.left {
				c := &e.left[i]
				c.code += scoreGaps(part, f, c.bias)
			}
		}
	}
	for i := range e.left {
		e.left[i].score = int(e.left[i].code + e.left[i].lines)
	}
	return s.spendWork(len(e.left)*len(e.of.proc.places)/16) && s.scoreOverlaps(e, f) && s.scoreData(e, f) && s.scoreNames(e, f)
}

// scoreOverlaps lowers the score of candidates at which the object would overlap another located
// object. Such a candidate is right only if the other object was unloaded before.
func (s *solver) scoreOverlaps(e *epoch, f *file) bool {
	for _, other := range e.of.proc.places {
		if other.of == e.of {
			continue
		}
		for i := range e.left {
			if c := &e.left[i]; overlaps(f, c.bias, other.of.file, other.bias) {
				c.score += overlap
			}
		}
	}
	return true
}

// scoreData raises the score of candidates at which a variable has the address in the report. It
// returns false if the work limit is exceeded.
func (s *solver) scoreData(e *epoch, f *file) bool {
	for _, d := range e.of.proc.data {
		named, ok := s.symbolsNamed(f, &f.variables, d.name, func() []object.Symbol { return f.Image.SymbolsNamed(d.name) })
		if !ok {
			return false
		}
		for _, sym := range named {
			for i := range e.left {
				if c := &e.left[i]; c.bias == d.addr-d.offset-sym.Addr {
					c.score += forData
				}
			}
		}
	}
	return true
}

// scoreNames scores each function that the report has for the epoch, as one fact. A candidate is
// supported if all addresses of the function are in a symbol with its name. A name without a symbol
// is ignored, since the function may be inlined. scoreNames returns false if the work limit is
// exceeded.
func (s *solver) scoreNames(e *epoch, f *file) bool {
	byName := make(map[string][]uint64) // addresses in each function
	var names []string
	for _, n := range e.names {
		ips := byName[n.fn]
		if ips == nil {
			names = append(names, n.fn)
		}
		byName[n.fn] = append(ips, n.ip)
	}
	for _, fn := range names {
		named, ok := s.symbolsNamed(f, &f.functions, fn, func() []object.Symbol { return f.findSymbols(fn, s.demangledName) })
		switch {
		case !ok || !s.spendWork(len(e.left)):
			return false
		case len(named) == 0:
			continue
		}
		favour, against := nameBits(named), againstName
		// Valgrind prints (below main) for several functions, of which some have no symbol in a
		// file without .symtab
		if fn == "(below main)" && !f.hasSymtab() {
			against = 0
		}
		for i := range e.left {
			if c := &e.left[i]; areInside(named, byName[fn], c.bias) {
				c.score += favour
			} else {
				c.score += against
			}
		}
	}
	return true
}

// symbolsNamed returns the symbols called name, from the cache known. If name is not in the cache,
// it calls find. ok is false if the work limit is exceeded.
func (s *solver) symbolsNamed(f *file, known *map[string][]object.Symbol, name string, find func() []object.Symbol) (all []object.Symbol, ok bool) {
	if all, ok = (*known)[name]; ok {
		return all, true
	}
	if !s.spendWork(f.size/symbolSize + 1) {
		return nil, false
	}
	if *known == nil || len(*known) >= maxNames {
		*known = make(map[string][]object.Symbol)
	}
	all = find()
	(*known)[name] = all
	return all, true
}

func (f *file) hasSymtab() bool {
	_, ok := f.Image.Section(".symtab")
	return ok
}

// scoreLines compares functions and lines in the report with the symbolizer's answers at each
// candidate. It returns true as soon as the best candidate leads by margin.
func (s *solver) scoreLines(e *epoch, f *file) bool {
	scores := make([]int32, min(len(e.left), maxAsked))
	for e.asked < min(len(e.names), maxAsked/16) && len(e.left) <= maxAsked && s.spendWork(len(e.left)*askedWork) {
		n := &e.names[e.asked]
		for i := range e.left {
			got := s.answers.Frames(nil, f.Object, n.ip-e.left[i].bias)
			if got.Pending {
				return false // the next call repeats the lookup
			}
			scores[i] = int32(n.agreement(got.Frames))
		}
		e.asked++
		for i := range e.left {
			e.left[i].lines += scores[i]
			e.left[i].score += int(scores[i])
		}
		sure := lead(e.left) >= margin
		best := e.left[0].score
		e.dropCandidates(func(c candidate) bool { return c.score < best-2*margin })
		if sure {
			return true
		}
	}
	return false
}

func (n *nameFact) agreement(frames []symbolize.Frame) int {
	if len(frames) == 0 {
		return 0
	}
	outer := &frames[len(frames)-1]
	plain, _, _ := strings.Cut(outer.Linkage, "@")
	named := report.Closed(outer.Func) == report.Closed(n.fn) || outer.Linkage == n.fn || plain == n.fn || n.fn == report.BelowMain && report.IsBelowMain(plain)
	switch line := n.line != 0 && uint64(outer.Line) == n.line && baseName(outer.File) == n.file; {
	case line:
		return forLine
	case named:
		return forLine / 2
	case outer.HasLine == (n.line != 0):
		return againstName
	}
	return 0 // the symbol may reach too far, or have several names
}

// nameBits returns the score of a function whose addresses are in the symbols named. The smaller
// the symbols are together, the higher the score is.
func nameBits(named []object.Symbol) int {
	size := uint64(0)
	for i := range named {
		size += min(page, max(1, named[i].Size))
	}
	return max(1, min(8, bits.Len64(page/min(page, size))-1))
}

// areInside reports whether every address is in one of the symbols.
func areInside(named []object.Symbol, ips []uint64, bias uint64) bool {
	for _, ip := range ips {
		if !slices.ContainsFunc(named, func(s object.Symbol) bool { return ip-bias-s.Addr < max(1, s.Size) }) {
			return false
		}
	}
	return true
}

// scoreCalls returns the score of facts at a bias. The address of a caller should follow a call. If
// it does not, a signal handler may end there, or a signal may have interrupted the code.
func (e *epoch) scoreCalls(facts []ipFact, f *file, bias uint64) (score int32) {
	for i := range facts {
		fact := &facts[i]
		rel := fact.ip - bias
		if fact.caller {
			is, known := f.Image.CallEndsAt(rel + 1)
			switch {
			case f.endsRequest(rel + 1):
				score += forRequest
			case !known:
			case is:
				score += forCall
				if fact.innerOf == e.of && f.callsFunction(rel+1, fact.inner-bias) {
					score += forTarget
				}
			case f.endsHandler(rel + 1):
				score += forSignal
			case !e.isInterrupted(fact, f, bias):
				score += againstCall
			}
		}
		if !fact.caller && f.endsRequest(rel) {
			score += forRequest
		}
	}
	return score
}

// isInterrupted reports whether a signal interrupted the code at the address of a fact. In that
// case, the next inner frame is the trampoline that ends the signal handler.
func (e *epoch) isInterrupted(fact *ipFact, f *file, bias uint64) (is bool) {
	if fact.innerOf == e.of {
		return f.endsHandler(fact.inner + 1 - bias)
	}
	if fact.innerOf == nil {
		return false
	}
	if at := fact.innerOf.epochAt(fact.inner); at != nil {
		inner := at.of.file
		inner.safely(func() { is = inner.endsHandler(fact.inner + 1 - at.bias) })
	}
	return is
}

// endsHandler reports whether the code at addr ends a signal handler with the system call
// sigreturn. Handlers return to this trampoline; no code calls it.
func (f *file) endsHandler(addr uint64) bool {
	switch f.Image.Machine {
	case elf.EM_X86_64:
		return f.hasCode(addr, "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05") // mov $15, %rax; syscall
	case elf.EM_386:
		return f.hasCode(addr, "\xb8\xad\x00\x00\x00\xcd\x80") || // mov $173, %eax; int $0x80
			f.hasCode(addr, "\x58\xb8\x77\x00\x00\x00\xcd\x80") // without SA_SIGINFO: pop %eax; mov $119, %eax; int $0x80
	case elf.EM_AARCH64:
		return f.hasCode(addr, "\x68\x11\x80\xd2\x01\x00\x00\xd4") // mov x8, #139; svc #0
	}
	return false
}

func (f *file) hasCode(addr uint64, code string) bool {
	return bytes.HasPrefix(f.Image.Loaded(addr), []byte(code))
}

// scoreGaps returns the score of addresses outside the functions of the unwind information.
func scoreGaps(facts []ipFact, f *file, bias uint64) (score int32) {
	for _, fact := range facts {
		if _, _, ok := f.Image.UnwindRange(fact.ip - bias); !ok {
			score += againstGap
		}
	}
	return score
}

// endsRequest reports whether a client request to Valgrind (valgrind.h) ends at addr. It looks
// only at Valgrind's preloaded libraries, which replace malloc and other functions.
func (f *file) endsRequest(addr uint64) bool {
	code := ""
	switch f.Image.Machine {
	case elf.EM_X86_64:
		code = "\x48\xc1\xc7\x33\x48\x87\xdb" // rol $51, %rdi; xchg %rbx, %rbx
	case elf.EM_386:
		code = "\xc1\xc7\x13\x87\xdb" // roll $19, %edi; xchgl %ebx, %ebx
	case elf.EM_AARCH64:
		code = "\x4a\x01\x0a\xaa" // orr x10, x10, x10
	}
	return f.ours && code != "" && f.hasCode(addr-uint64(len(code)), code)
}

func (f *file) hasUnwindInfo() bool {
	_, ok := f.Image.Section(".eh_frame")
	return ok
}

// callsFunction reports whether a direct call before addr leads to the function that contains
// callee. It recognizes only x86 calls.
func (f *file) callsFunction(addr, callee uint64) bool {
	start, _, ok := f.Image.UnwindRange(callee)
	if !ok || f.Image.Machine != elf.EM_X86_64 && f.Image.Machine != elf.EM_386 {
		return false
	}
	code := f.Image.Loaded(addr - 5)
	if len(code) < 5 || code[0] != 0xe8 {
		return false
	}
	return addr+uint64(int64(int32(binary.LittleEndian.Uint32(code[1:])))) == start
}

// checkBias locates the epoch at bias if enough addresses of callers follow a call. Otherwise it
// marks the file as not the one that ran. Code that a signal interrupted need not follow a call. If
// such interruptions could explain the addresses, but the object of the next inner frame is not
// located yet, the file is only doubted.
func (e *epoch) checkBias(f *file, bias uint64, by string) {
	calls, others, open := 0, 0, 0
	for i := range e.ips {
		fact := &e.ips[i]
		if !fact.caller {
			continue
		}
		end := fact.ip - bias + 1
		switch is, known := f.Image.CallEndsAt(end); {
		case !known:
		case is || f.endsRequest(end):
			calls++
		case f.endsHandler(end) || e.isInterrupted(fact, f, bias):
		case fact.innerOf != nil && fact.innerOf != e.of && fact.innerOf.file.Err == nil && fact.innerOf.epochAt(fact.inner) == nil:
			open++
		default:
			others++
		}
	}
	e.stale = tooFew(calls, calls+others)
	e.doubted = !e.stale && tooFew(calls, calls+others+open)
	if !e.stale && !e.doubted {
		e.locate(bias, by)
	}
}

// tooFew reports whether too few callers follow a call: less than half of three or more callers, or
// less than four fifths of ten or more.
func tooFew(calls, callers int) bool {
	return callers >= 3 && calls*2 < callers || callers >= 10 && calls*5 < callers*4
}
