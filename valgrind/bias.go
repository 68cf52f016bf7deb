package valgrind

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// What a fact says for a bias or against it, as the logarithm to base 2 of how
// much likelier the fact is at the true one than at another. Of the places in
// code, one in 25 is behind a call.
const (
	forCall     = 4
	againstCall = -5 // some frames that are not callers are not recognised: 2 %
	forSignal   = 10 // the code ends a signal handler: nine bytes, once or twice in a file
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

const (
	stageSize    = 8   // addresses, after which candidates are dropped
	dropped      = 40  // behind the best
	askedWork    = 128 // times an address: what a question to the symbolizer takes
	demangleWork = 4   // times an address
	symbolSize   = 512 // bytes of symbol tables that take as long as an address
)

// A candidate is a bias that an epoch may have.
type candidate struct {
	bias  uint64
	code  int32 // what the epoch's addresses say for it
	lines int32 // what the symbolizer says
	score int   // what all says, at the last try
}

const candidateSize = 24 // bytes

// solver finds the biases of a process's objects.
type solver struct {
	maps     []Map
	demangle func(string) string
	answers  *answerer // nil: nobody is asked what code at an address is
	work     int       // done so far: facts that candidates were held against
	allowed  int       // of it
}

// spend reports whether so much more work may be done, and counts it.
func (s *solver) spend(n int) bool {
	if s.work > s.allowed {
		return false
	}
	s.work += n
	return true
}

// demangled returns a symbol's name as reports have it.
func (s *solver) demangled(name string) string {
	s.work += demangleWork
	return s.demangle(name)
}

// solve looks for the place of an epoch. It reports whether it is known.
func (s *solver) solve(e *epoch) bool {
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
	f.safely(func() { s.choose(e, f) })
	if f.Err != nil {
		e.located = false
	}
	return e.located
}

// solveAll looks for the places of all objects of a process. Each place that is found is one where
// other objects are not, and may show that a signal interrupted code in another object. What is
// still doubted after that is not the file that ran.
func (s *solver) solveAll(p *process) {
	for before := -1; len(p.places) != before; {
		before = len(p.places)
		for _, o := range p.order {
			for _, e := range o.epochs {
				s.solve(e)
			}
		}
	}
	for _, o := range p.order {
		for _, e := range o.epochs {
			e.stale = e.stale || e.doubted
		}
	}
}

func (s *solver) choose(e *epoch, f *file) {
	if bias, ok := s.given(e, f); ok {
		e.locate(bias, byMap)
		return
	}
	if f.Image.Type == elf.ET_EXEC {
		if e.stale = !inAny(e.windows, 0); !e.stale {
			e.check(f, 0, byFile)
		}
		return
	}
	doubtful := e.mayBeData(f)
	if w := e.windows; len(w) == 1 && w[0].from == w[0].to && !doubtful {
		e.check(f, w[0].from, bySegments)
		return
	}
	if !e.narrow() {
		return
	}
	if !s.score(e, f) {
		return
	}
	by := byFacts
	sure := lead(e.left) >= margin
	if !sure && s.answers != nil {
		sure = s.scoreLines(e, f)
	}
	if !sure {
		by = byPrior
		usual := e.of.usual()
		for i := range e.left {
			if e.left[i].bias == usual {
				e.left[i].score += prior
			}
		}
		sure = lead(e.left) >= margin
	}
	if sure && !(doubtful && e.left[0].score < margin) {
		e.check(f, e.left[0].bias, by)
	}
}

// usual returns where Valgrind loads an object as a rule; what is no bias where
// it has none.
func (o *loaded) usual() uint64 {
	switch {
	case o.proc.isMain(o):
		return mainBias
	case isLinker(o.name):
		return linkerBias
	}
	return 1
}

// locate notes where an epoch's object is. What led to it is not needed any
// more.
func (e *epoch) locate(bias uint64, by string) {
	e.located, e.bias, e.by = true, bias, by
	e.of.proc.places = append(e.of.proc.places, e)
	e.seen, e.named, e.ips, e.names, e.left = nil, nil, nil, nil, nil
	e.of.proc.keep(-e.kept)
	e.kept = 0
}

// keep is process.keep for a fact of e.
func (e *epoch) keep(size int) bool {
	ok := e.of.proc.keep(size)
	if ok {
		e.kept += size
	}
	return ok
}

// drop drops the candidates that are out.
func (e *epoch) drop(out func(candidate) bool) {
	before := len(e.left)
	e.left = slices.DeleteFunc(e.left, out)
	e.keep((len(e.left) - before) * candidateSize)
}

// given returns the bias that a map says, if the epoch's addresses agree.
func (s *solver) given(e *epoch, f *file) (uint64, bool) {
	for i := range s.maps {
		if bias, ok := s.maps[i].bias(e.of.name, f); ok && (inAny(e.windows, bias) || e.loadedAt(f, bias)) {
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

// narrow drops the candidates outside the windows, or begins with those in
// them. It reports whether they are not too many.
func (e *epoch) narrow() bool {
	e.drop(func(c candidate) bool { return !inAny(e.windows, c.bias) })
	if len(e.left) > 0 {
		return true
	}
	e.counted, e.asked = 0, 0
	n := e.places()
	if n > maxBiases || !e.keep(n*candidateSize) {
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
	e.keep((len(e.left) - n) * candidateSize)
	return true
}

// places returns how many biases an epoch may have.
func (e *epoch) places() (n int) {
	if len(e.left) > 0 {
		return len(e.left)
	}
	for _, w := range e.windows {
		n += int(min((w.to-w.from)/page, maxBiases)) + 1
	}
	return n
}

// lead sorts the best to the front, and returns the logarithm to base 2 of how
// much likelier it is than all others together.
func lead(all []candidate) float64 {
	slices.SortStableFunc(all, func(a, b candidate) int { return cmp.Compare(b.score, a.score) })
	others := 0.0
	for _, c := range all[1:] {
		others += math.Exp2(float64(c.score - all[0].score))
	}
	return -math.Log2(others)
}

// score holds the facts against the candidates. Each address is held against
// each candidate once: those that are far behind by then are dropped. It
// reports whether that is not too much work.
func (s *solver) score(e *epoch, f *file) bool {
	for e.counted < len(e.ips) {
		part := e.ips[e.counted:min(len(e.ips), e.counted+stageSize)]
		if !s.spend(len(e.left) * len(part)) {
			return false
		}
		e.counted += len(part)
		best := int32(math.MinInt32)
		for i := range e.left {
			c := &e.left[i]
			c.code += e.scoreCalls(part, f, c.bias)
			best = max(best, c.code)
		}
		e.drop(func(c candidate) bool { return c.code < best-dropped })
		if f.unwinds() { // which takes longer to ask
			for i := range e.left {
				c := &e.left[i]
				c.code += scoreGaps(part, f, c.bias)
			}
		}
	}
	for i := range e.left {
		e.left[i].score = int(e.left[i].code + e.left[i].lines)
	}
	return s.spend(len(e.left)*len(e.of.proc.places)/16) && s.scoreOverlaps(e, f) && s.scoreData(e, f) && s.scoreNames(e, f)
}

// scoreOverlaps asks which candidates leave the other objects where they are.
// One that was unloaded may lie in the same place.
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

func (s *solver) scoreData(e *epoch, f *file) bool {
	for _, d := range e.of.proc.data {
		named, ok := s.symbols(f, &f.variables, d.name, func() []object.Symbol { return f.Image.SymbolsNamed(d.name) })
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

// scoreNames asks where the functions are that the report names. A name that
// the file does not have says nothing: inlined, or known from debug
// information only.
func (s *solver) scoreNames(e *epoch, f *file) bool {
	byName := make(map[string][]uint64) // the addresses of a function say the same: they count as one
	var names []string
	for _, n := range e.names {
		ips := byName[n.fn]
		if ips == nil {
			names = append(names, n.fn)
		}
		byName[n.fn] = append(ips, n.ip)
	}
	for _, fn := range names {
		named, ok := s.symbols(f, &f.functions, fn, func() []object.Symbol { return f.find(fn, s.demangled) })
		switch {
		case !ok || !s.spend(len(e.left)):
			return false
		case len(named) == 0:
			continue
		}
		favour, against := nameBits(named), againstName
		if fn == "(below main)" && !f.hasSymtab() { // it may be another of those that are called so
			against = 0
		}
		for i := range e.left {
			if c := &e.left[i]; inside(named, byName[fn], c.bias) {
				c.score += favour
			} else {
				c.score += against
			}
		}
	}
	return true
}

// symbols returns the symbols of this name, which find finds if they are not
// known; ok is false where that is too much work.
func (s *solver) symbols(f *file, known *map[string][]object.Symbol, name string, find func() []object.Symbol) (all []object.Symbol, ok bool) {
	if all, ok = (*known)[name]; ok {
		return all, true
	}
	if !s.spend(f.size/symbolSize + 1) {
		return nil, false
	}
	if *known == nil || len(*known) >= maxNames {
		*known = make(map[string][]object.Symbol)
	}
	all = find()
	(*known)[name] = all
	return all, true
}

// hasSymtab reports whether the file has the names of all its functions.
func (f *file) hasSymtab() bool {
	_, ok := f.Image.Section(".symtab")
	return ok
}

// scoreLines asks the symbolizer which functions and lines are at the
// addresses of which the report says that, until one candidate is far ahead:
// whether one is.
func (s *solver) scoreLines(e *epoch, f *file) bool {
	said := make([]int32, min(len(e.left), maxAsked))
	for e.asked < min(len(e.names), maxAsked/16) && len(e.left) <= maxAsked && s.spend(len(e.left)*askedWork) {
		n := &e.names[e.asked]
		for i := range e.left {
			got := s.answers.Frames(nil, f.Object, n.ip-e.left[i].bias)
			if got.Pending {
				return false // another time
			}
			said[i] = int32(n.agreement(got.Frames))
		}
		e.asked++
		for i := range e.left {
			e.left[i].lines += said[i]
			e.left[i].score += int(said[i])
		}
		sure := lead(e.left) >= margin
		best := e.left[0].score
		e.drop(func(c candidate) bool { return c.score < best-2*margin })
		if sure {
			return true
		}
	}
	return false
}

// agreement says how an answer speaks for the fact.
func (n *nameFact) agreement(frames []symbolize.Frame) int {
	if len(frames) == 0 {
		return 0
	}
	outer := &frames[len(frames)-1]
	plain, _, _ := strings.Cut(outer.Linkage, "@")
	named := report.Closed(outer.Func) == report.Closed(n.fn) || outer.Linkage == n.fn || plain == n.fn || n.fn == report.BelowMain && report.IsBelowMain(plain)
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

// scoreCalls asks whether calls are where they must be. Where no call ends, a signal handler may, or
// code that a signal interrupted.
func (e *epoch) scoreCalls(facts []ipFact, f *file, bias uint64) (score int32) {
	for i := range facts {
		fact := &facts[i]
		rel := fact.ip - bias
		if fact.caller {
			is, known := f.Image.CallEndsAt(rel + 1)
			switch {
			case f.asks(rel + 1):
				score += forRequest
			case !known:
			case is:
				score += forCall
				if fact.innerOf == e.of && f.calls(rel+1, fact.inner-bias) {
					score += forTarget
				}
			case f.endsHandler(rel + 1):
				score += forSignal
			case !e.isInterrupted(fact, f, bias):
				score += againstCall
			}
		}
		if !fact.caller && f.asks(rel) {
			score += forRequest
		}
	}
	return score
}

// isInterrupted reports whether a signal interrupted the code of a fact, so that it is not a caller:
// the next inner frame is the trampoline that ends the handler.
func (e *epoch) isInterrupted(fact *ipFact, f *file, bias uint64) (is bool) {
	if fact.innerOf == e.of {
		return f.endsHandler(fact.inner + 1 - bias)
	}
	if fact.innerOf == nil {
		return false
	}
	if at := fact.innerOf.at(fact.inner); at != nil {
		inner := at.of.file
		inner.safely(func() { is = inner.endsHandler(fact.inner + 1 - at.bias) })
	}
	return is
}

// endsHandler reports whether the code at addr is the trampoline that ends a signal handler: the
// system call sigreturn. Nothing calls it: the kernel, or Valgrind, makes a handler return to it.
func (f *file) endsHandler(addr uint64) bool {
	code := ""
	switch f.Image.Machine {
	case elf.EM_X86_64:
		code = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05" // mov $15, %rax; syscall
	case elf.EM_386:
		code = "\xb8\xad\x00\x00\x00\xcd\x80" // mov $173, %eax; int $0x80
	case elf.EM_AARCH64:
		code = "\x68\x11\x80\xd2\x01\x00\x00\xd4" // mov x8, #139; svc #0
	default:
		return false
	}
	b := f.Image.Loaded(addr)
	return len(b) >= len(code) && string(b[:len(code)]) == code
}

// scoreGaps asks whether functions are where they must be.
func scoreGaps(facts []ipFact, f *file, bias uint64) (score int32) {
	for _, fact := range facts {
		if _, _, ok := f.Image.UnwindRange(fact.ip - bias); !ok {
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
	switch f.Image.Machine {
	case elf.EM_X86_64:
		code = "\x48\xc1\xc7\x33\x48\x87\xdb" // rol $51, %rdi; xchg %rbx, %rbx
	case elf.EM_386:
		code = "\xc1\xc7\x13\x87\xdb" // roll $19, %edi; xchgl %ebx, %ebx
	case elf.EM_AARCH64:
		code = "\x4a\x01\x0a\xaa" // orr x10, x10, x10
	default:
		return false
	}
	b := f.Image.Loaded(addr - uint64(len(code)))
	return len(b) >= len(code) && string(b[:len(code)]) == code
}

// unwinds reports whether the file says where its functions begin and end.
func (f *file) unwinds() bool {
	_, ok := f.Image.Section(".eh_frame")
	return ok
}

// calls reports whether the call that ends at addr is a direct one to the
// beginning of the function at callee.
func (f *file) calls(addr, callee uint64) bool {
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

// check locates the epoch at a bias, unless the code of the file there shows that it is not the file
// that ran: too few callers follow a call. Code that signals interrupted does not, and that may not
// be known until the object of the handler's trampoline is located.
func (e *epoch) check(f *file, bias uint64, by string) {
	calls, others, open := 0, 0, 0
	for i := range e.ips {
		fact := &e.ips[i]
		if !fact.caller {
			continue
		}
		end := fact.ip - bias + 1
		switch is, known := f.Image.CallEndsAt(end); {
		case !known:
		case is || f.asks(end):
			calls++
		case f.endsHandler(end) || e.isInterrupted(fact, f, bias):
		case fact.innerOf != nil && fact.innerOf != e.of && fact.innerOf.file.Err == nil && fact.innerOf.at(fact.inner) == nil:
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

// tooFew reports whether a file of which so many of the callers follow a call is not the one that
// ran.
func tooFew(calls, callers int) bool {
	return callers >= 3 && calls*2 < callers || callers >= 10 && calls*5 < callers*4
}
