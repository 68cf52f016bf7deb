package judge

import (
	"cmp"
	"debug/elf"
	"math"
	"math/bits"
	"slices"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// If a module's frames have only runtime addresses, the search tries load biases: all multiples of
// the page size that put every address into code. A bias is supported by each return address that
// follows a call in the file, and by each function that has the address which the log gives for it.
// A bias is accepted if more supports it than would support any wrong bias or file by chance.

// Limits of the search.
const (
	maxSightings = 128     // addresses of a module that are compared
	maxBiases    = 1 << 16 // biases tried for a module: enough for 256 MiB of code
	// comparisons of an address with a bias, for all modules of a trace: 50 ms, at 50 ns each
	maxBiasWork = 1 << 20
	biasStage   = 4 // addresses that are compared before the worst biases are dropped
)

// The scores of facts, in bits. A fact of score n is 2^n times as likely at the true bias as at a
// wrong one. One in 50 to 100 addresses in code follows a call.
const (
	scoreCall       = 4
	scoreNoCall     = -5
	scoreTrampoline = 18 // a signal trampoline; its code occurs once or twice in a megabyte
	scoreName       = 8  // maximum, for a function of at most 16 bytes
	scoreUsual      = 10 // for the likely bias, verdict.usual
	scoreDropped    = 24 // a bias whose score is this far below the best is dropped
	// minimum lead of the best bias, in bits: over all other biases together, and over the score
	// that the best of as many wrong biases would have by chance
	scoreMargin = 8
)

// A sighting is an address of a module with an unknown load bias.
type sighting struct {
	addr uint64
	call dialect.Call
	// the file's symbols that match name
	inside []object.Symbol
	name   string // name of the function that the log has for the address, if any
}

// A bias is a load bias that a module may have.
type bias struct {
	at    uint64
	score int
	calls int // return addresses that follow a call
	facts int // facts for the bias
}

// sight adds the address of f to the sightings. interrupted is set if a signal has interrupted f.
func (v *verdict) sight(f *Frame, interrupted bool) {
	call := f.Call
	if interrupted || call == dialect.System || call == dialect.Adjusted && f.Number == 0 {
		call = dialect.Exact
	}
	for i := range v.seen {
		if s := &v.seen[i]; s.addr == f.Addr {
			if call == dialect.Exact && s.call != dialect.Exact {
				s.call, v.tried = call, 0
			}
			return
		}
	}
	if len(v.seen) >= maxSightings {
		return
	}
	s := sighting{addr: f.Addr, call: call}
	if f.Symbol.Inside {
		s.inside, s.name = v.image.symbols(f.Symbol.Name), f.Symbol.Name
	}
	v.seen = append(v.seen, s)
	if v.usual == 0 {
		v.usual = f.Usual
	}
}

// A searched is the result of a search for a load bias, as stored in a Memory. distance is the load
// bias minus the page of the first sighting, so it does not depend on the load address.
type searched struct {
	distance uint64
	found    bool
}

// search looks for the bias of v if there are enough new sightings since the last search. It reuses
// an earlier trace's result for the same file and sightings.
func (t *Trace) search(v *verdict) {
	if v.biased || len(v.seen) == 0 || v.tried > 0 && len(v.seen) < v.tried+1+v.tried/4 {
		return
	}
	v.tried = len(v.seen)
	first := v.seen[0].addr
	page := first &^ (pageSize - 1)
	key := v.sightings(page)
	slices.SortStableFunc(v.seen, func(a, b sighting) int { return cmp.Compare(b.worth(), a.worth()) })
	result, known := t.remembered().searches.get(key, maxSearched)
	if !known {
		left := max(0, min(maxBiasWork-t.worked, t.quota().Left()))
		work, complete := left, false
		object.Guard(func() {
			var b bias
			b, result.found, complete = v.search(first, &work)
			result.distance = b.at - page
		})
		t.worked += left - work
		t.quota().Spend(left - work)
		if complete {
			t.remembered().searches.put(key, result, maxSearched)
		}
		v.cut = !complete
	}
	if result.found {
		v.bias, v.biased, v.seen = page+result.distance, true, nil
	}
}

// sightings returns a hash of the file and the sightings. page is the page of the first sighting.
// The hash contains distances from page, so it does not depend on the load address.
func (v *verdict) sightings(page uint64) sum {
	q := about(v.image)
	if _, high := v.image.span(); page <= high {
		q = q.number(page) // no bias is negative, so a low page allows fewer biases
	}
	if v.usual != 0 {
		q = q.number(v.usual - page)
	}
	for i := range v.seen {
		s := &v.seen[i]
		q = q.number(s.addr - page).number(uint64(s.call)).text(s.name).number(uint64(len(s.inside)))
	}
	return q.sum()
}

// search looks for the bias that explains the sightings. first is the address of the first
// sighting. search subtracts the number of its comparisons from *work. complete is false if *work
// was too small.
func (v *verdict) search(first uint64, work *int) (b bias, found, complete bool) {
	all, complete := v.possible(first, work)
	tried := len(all)
	for i := range v.seen {
		if len(all) == 0 {
			return b, false, complete
		}
		if *work < len(all) {
			return b, false, false
		}
		*work -= len(all)
		s := &v.seen[i]
		all = slices.DeleteFunc(all, func(b bias) bool { return !s.agrees(v.image, &b) })
		for j := range all {
			s.score(v.image, &all[j])
		}
		if i%biasStage == biasStage-1 {
			all = withoutWorst(all)
		}
	}
	b, found = v.best(all, tried)
	return b, found, true
}

// best returns the bias with the highest score, and whether the facts prove it. tried is the number
// of biases that were possible before the facts were compared.
func (v *verdict) best(all []bias, tried int) (b bias, ok bool) {
	others := math.Log2(float64(max(tried, 1)))
	for i := range all {
		if all[i].at == v.usual && v.usual != 0 {
			all[i].score += scoreUsual
		}
	}
	slices.SortStableFunc(all, func(a, b bias) int { return cmp.Compare(b.score, a.score) })
	if len(all) == 0 {
		return b, false
	}
	b = all[0]
	rest := 0.0
	for _, other := range all[1:] {
		rest += math.Exp2(float64(other.score - b.score))
	}
	facts := float64(b.score)
	if b.at == v.usual && v.usual != 0 {
		facts, others = facts-scoreUsual, 0
	}
	trampoline := b.facts > 0 && facts >= scoreTrampoline
	return b, (b.calls > 0 && b.facts > 1 || trampoline) && facts-others >= scoreMargin && -math.Log2(rest) >= scoreMargin
}

// withoutWorst removes the biases whose score is far below the best.
func withoutWorst(all []bias) []bias {
	best := math.MinInt
	for i := range all {
		best = max(best, all[i].score)
	}
	return slices.DeleteFunc(all, func(b bias) bool { return b.score < best-scoreDropped })
}

// possible returns the biases that put the first sighting into an executable segment, or none if
// there are more than maxBiases. first is the address of the first sighting. possible subtracts the
// number of biases from *work. complete is false if *work was too small.
func (v *verdict) possible(first uint64, work *int) (all []bias, complete bool) {
	type biases struct{ low, number uint64 }
	var ranges []biases
	number := uint64(0)
	for _, s := range v.image.Segments {
		if s.Type != elf.PT_LOAD || s.Flags&elf.PF_X == 0 || s.MemSize == 0 || s.Addr > first {
			continue
		}
		low := uint64(0)
		if end := s.Addr + s.MemSize; end > s.Addr && first > end {
			low = (first - end) &^ (pageSize - 1)
		}
		if low > first-s.Addr {
			continue
		}
		r := biases{low, (first-s.Addr-low)/pageSize + 1}
		if number += r.number; number > maxBiases {
			return nil, true
		}
		ranges = append(ranges, r)
	}
	if *work < int(number) {
		return nil, false
	}
	*work -= int(number)
	all = make([]bias, 0, number)
	for _, r := range ranges {
		for i := range r.number {
			all = append(all, bias{at: r.low + i*pageSize})
		}
	}
	if len(ranges) > 1 { // ranges may overlap, and give a bias twice
		slices.SortFunc(all, func(a, b bias) int { return cmp.Compare(a.at, b.at) })
		all = slices.CompactFunc(all, func(a, b bias) bool { return a.at == b.at })
	}
	return all, true
}

// worth returns the rank of a sighting. Sightings that exclude most biases have the highest rank.
func (s *sighting) worth() int {
	switch {
	case len(s.inside) > 0:
		return 2
	case s.call != dialect.Exact:
		return 1
	}
	return 0
}

// lookup returns an address within the instruction: for a return address, one byte before it, in
// the call.
func (s *sighting) lookup() uint64 {
	if s.call == dialect.Return {
		return s.addr - 1
	}
	return s.addr
}

// agrees reports whether the bias b puts the address into code, and into the function that the log
// names.
func (s *sighting) agrees(m *Image, b *bias) bool {
	if b.at > s.addr {
		return false
	}
	addr := s.lookup() - b.at
	// the name in the log may be from a lookup of the return address, at which the next function
	// may begin
	return m.isCode(addr) && (len(s.inside) == 0 || isInside(s.inside, addr) || isInside(s.inside, s.addr-b.at))
}

// score adds to b the facts that the sighting gives for or against this bias.
func (s *sighting) score(m *Image, b *bias) {
	if len(s.inside) > 0 {
		b.score += nameBits(s.inside)
		b.facts++
	}
	if s.call == dialect.Exact || s.call == dialect.Either {
		return
	}
	yes, known := m.followsCall(s.addr-b.at, s.call)
	switch {
	case !known:
	case yes:
		b.score += scoreCall
		b.calls++
		b.facts++
	case s.call == dialect.Return && m.isTrampoline(s.addr-b.at):
		b.score += scoreTrampoline
		b.facts++
	default:
		b.score += scoreNoCall
	}
}

// isInside reports whether addr is in one of the symbols.
func isInside(all []object.Symbol, addr uint64) bool {
	return slices.ContainsFunc(all, func(s object.Symbol) bool { return addr-s.Addr < max(1, s.Size) })
}

// nameBits returns the score for an address in one of these symbols, which is higher for smaller
// symbols.
func nameBits(all []object.Symbol) int {
	size := uint64(0)
	for i := range all {
		size += min(pageSize, max(1, all[i].Size))
	}
	return max(0, min(scoreName, bits.Len64(pageSize/min(pageSize, size))-1))
}
