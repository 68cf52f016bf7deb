package dwarf

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// llvmMap is a literal copy of LLVM's map from addresses to entries: DWARFUnit::updateAddressDieMap
// and getSubroutineForAddress.
type llvmMap []span // sorted by lo

func (m *llvmMap) insert(s span) {
	at, _ := slices.BinarySearchFunc(*m, s.lo+1, func(e span, lo uint64) int { return cmp.Compare(e.lo, lo) })
	if at > 0 {
		before := (*m)[at-1]
		if s.lo < before.hi {
			if s.hi < before.hi {
				m.set(span{lo: s.hi, hi: before.hi, id: before.id})
			}
			if s.lo > before.lo {
				(*m)[at-1].hi = s.lo
			}
		}
	}
	m.set(s)
}

func (m *llvmMap) set(s span) {
	at, found := slices.BinarySearchFunc(*m, s.lo, func(e span, lo uint64) int { return cmp.Compare(e.lo, lo) })
	if found {
		(*m)[at] = s
		return
	}
	*m = slices.Insert(*m, at, s)
}

func (m llvmMap) find(addr uint64) int {
	at, _ := slices.BinarySearchFunc(m, addr+1, func(e span, lo uint64) int { return cmp.Compare(e.lo, lo) })
	if at == 0 || addr >= m[at-1].hi {
		return -1
	}
	return int(m[at-1].id)
}

// nest appends ranges inside [lo,hi), parents before children, as compilers write inlined calls.
func nest(r *rand.Rand, dst []span, lo, hi uint64, depth int) []span {
	id := uint32(len(dst))
	dst = append(dst, span{lo, hi, id, id})
	for depth > 0 && hi-lo > 2 && r.IntN(4) > 0 {
		a := lo + r.Uint64N(hi-lo)
		b := a + 1 + r.Uint64N(hi-a)
		dst = nest(r, dst, a, b, depth-1)
		lo = b
		if lo >= hi {
			break
		}
	}
	return dst
}

func TestInnermostCallIsThatOfLLVM(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for range 2000 {
		spans := nest(r, nil, 10, 10+r.Uint64N(60)+1, 4)
		var want llvmMap
		for _, s := range spans {
			want.insert(s)
		}
		var table functionTable
		var f function
		if !table.sortCalls(&f, slices.Clone(spans)) {
			t.Fatalf("%v are not tidy", spans)
		}
		for addr := uint64(8); addr < 75; addr++ {
			got := -1
			if i := pick(spans, addr); i >= 0 {
				got = int(spans[i].id)
			}
			if got != want.find(addr) {
				t.Fatalf("pick of %d in %v: got %d, want %d", addr, spans, got, want.find(addr))
			}
			got = -1
			for _, s := range table.starts {
				if f.base+uint64(s.lo) <= addr {
					got = int(int32(s.call))
				}
			}
			if got != want.find(addr) {
				t.Fatalf("start of %d in %v: got %d, want %d", addr, spans, got, want.find(addr))
			}
		}
	}
}

// For ranges that overlap in any way, binary search must always agree with pick. pick must agree
// with LLVM if there are two ranges. With more ranges, at most one in 50 answers may differ from
// LLVM's.
func TestOverlappingRanges(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	differ, asked := 0, 0
	for range 4000 {
		var spans []span
		for i := range uint32(2 + r.IntN(4)) {
			lo := r.Uint64N(20)
			spans = append(spans, span{lo, lo + 1 + r.Uint64N(20), i, i})
		}
		var want llvmMap
		for _, s := range spans {
			want.insert(s)
		}
		set := functionSet{spans: slices.Clone(spans)}
		set.sort()
		for addr := range uint64(42) {
			got := -1
			if i := pick(spans, addr); i >= 0 {
				got = int(spans[i].id)
			}
			asked++
			if got != want.find(addr) {
				differ++
				if len(spans) == 2 {
					t.Fatalf("pick of %d in %v: got %d, want %d", addr, spans, got, want.find(addr))
				}
			}
			if sorted := set.find(addr); sorted != got {
				t.Fatalf("%d in the clusters of %v: got %d, want %d", addr, spans, sorted, got)
			}
		}
	}
	if differ*50 > asked {
		t.Errorf("%d of %d answers for ranges that overlap without nesting are not LLVM's", differ, asked)
	}
}

// llvmSweep is a literal copy of LLVM's DWARFDebugAranges::construct.
func llvmSweep(all []unitRange) rangeSet {
	type end struct {
		addr, unit uint64
		start      bool
	}
	var ends []end
	for _, r := range all {
		ends = append(ends, end{r.lo, r.unit, true}, end{r.hi, r.unit, false})
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.addr, b.addr) })
	var out rangeSet
	var valid []uint64
	prev := ^uint64(0)
	for _, e := range ends {
		if prev < e.addr && len(valid) > 0 {
			if n := len(out); n > 0 && out[n-1].hi == prev && slices.Contains(valid, out[n-1].unit) {
				out[n-1].hi = e.addr
			} else {
				out = append(out, unitRange{prev, e.addr, slices.Min(valid)})
			}
		}
		if e.start {
			valid = append(valid, e.unit)
		} else {
			at := slices.Index(valid, e.unit)
			valid = slices.Delete(valid, at, at+1)
		}
		prev = e.addr
	}
	return out
}

func TestContestedUnitIsThatOfLLVM(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	settled := map[uint64]int{}
	for range 5000 {
		var all []unitRange
		for range 1 + r.IntN(9) {
			lo := uint64(1000 + r.IntN(30))
			all = append(all, unitRange{lo, lo + 1 + r.Uint64N(9), r.Uint64N(5) * 100})
		}
		want := llvmSweep(all)
		got := sweep(slices.Clone(all))
		for addr := uint64(995); addr < 1045; addr++ {
			if g, w := got.find(addr), want.find(addr); g != w {
				t.Fatalf("%d in %v: got unit %d, want %d", addr, all, g, w)
			}
			for _, within := range []uint64{1, 6, nearBytes} {
				var near []unitRange
				for _, a := range all {
					if a.near(addr, within) {
						near = append(near, a)
					}
				}
				unit, sure := settle(near, addr, within)
				if sure {
					settled[within]++
				}
				if sure && unit != want.find(addr) {
					t.Fatalf("%d settled within %d in %v: got unit %d, want %d", addr, within, all, unit, want.find(addr))
				}
			}
		}
	}
	if settled[6] == 0 || settled[nearBytes] <= settled[6] {
		t.Errorf("settle is sure %v times", settled)
	}
}

// settle must not be sure about an address if several units claim all bytes that it considers.
func TestSettleKnowsWhatItDoesNotSee(t *testing.T) {
	const far = 3 * nearBytes
	all := []unitRange{{1000, 1100, 2}, {1000, 1000 + far, 7}, {1050, 1000 + far, 3}}
	for _, tt := range []struct {
		addr uint64
		sure bool
	}{{1010, true}, {1060, true}, {1000 + nearBytes/32, true}, {1000 + nearBytes/2, true}, {1000 + 2*nearBytes, false}} {
		var near []unitRange
		for _, a := range all {
			if a.near(tt.addr, nearBytes) {
				near = append(near, a)
			}
		}
		unit, sure := settleNear(near, tt.addr)
		if sure != tt.sure {
			t.Errorf("%d: got sure %v, want %v", tt.addr, sure, tt.sure)
		}
		if want := llvmSweep(all).find(tt.addr); sure && unit != want {
			t.Errorf("%d: got unit %d, want %d", tt.addr, unit, want)
		}
	}
}

// Addresses of calls are kept as distances from the start of their function. Calls must be found
// even if a distance does not fit in 32 bits: lookups then call pick.
func TestCallsFarFromTheirFunctionAreFound(t *testing.T) {
	const far = 1 << 32
	for _, tt := range []struct {
		name string
		end  uint64
		want layout
	}{{"within reach", far + 99, tidy}, {"out of reach", far + 100, untidy}} {
		t.Run(tt.name, func(t *testing.T) {
			spans := []span{{100, tt.end, 0, 0}, {200, 300, 1, 1}, {far, far + 50, 2, 2}}
			u := unit{funcs: functionTable{calls: make([]call, 3), list: []function{{parsed: true, numCalls: 3}}}}
			u.keepSpans(&u.funcs.list[0], slices.Clone(spans))
			if got := u.funcs.list[0].layout; got != tt.want {
				t.Errorf("got the layout %d, want %d", got, tt.want)
			}
			for addr, want := range map[uint64]int{99: 0, 100: 0, 199: 0, 200: 1, 299: 1, 300: 0, far - 1: 0, far: 2, far + 49: 2, far + 50: 0, far + 98: 0, 3 * far: 0} {
				if got, _ := u.callAt(0, addr); got != want {
					t.Errorf("address %#x: got call %d, want %d", addr, got, want)
				}
			}
		})
	}
}
