package dwarf

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// For overlapping ranges, a reachMap must give each address the owner that LLVM's map gives it.
// model reproduces LLVM's map, from the start of a range to its end and owner.
func TestReachesAreThoseOfLLVM(t *testing.T) {
	type entry struct {
		hi    uint64
		owner uint32
	}
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 2000 {
		var m reachMap
		model := map[uint64]entry{}
		below := func(addr uint64) (lo uint64, found bool) {
			for a := int64(addr); a >= 0; a-- {
				if _, ok := model[uint64(a)]; ok {
					return uint64(a), true
				}
			}
			return 0, false
		}
		for owner := range uint32(1 + r.IntN(8)) {
			lo := r.Uint64N(12) * r.Uint64N(2)
			hi := lo + 1 + r.Uint64N(12)
			m.give(reach{lo, hi, 0, owner})
			if at, ok := below(lo); ok && lo < model[at].hi {
				old := model[at]
				if hi < old.hi {
					model[hi] = old
				}
				if lo > at {
					model[at] = entry{lo, old.owner}
				}
			}
			model[lo] = entry{hi, owner}
		}
		all := slices.Concat(m...)
		for addr := range uint64(30) {
			want := -1
			if at, ok := below(addr); ok && addr < model[at].hi {
				want = int(model[at].owner)
			}
			got := -1
			if i := above(all, addr) - 1; i >= 0 && addr < all[i].hi {
				got = int(all[i].call)
			}
			if got != want {
				t.Fatalf("round %d, address %d: got %d, want %d of %v", round, addr, got, want, all)
			}
		}
	}
}

// A reachMap with several pieces must give each address the owner that LLVM's map gives it.
func TestManyReachesAreThoseOfLLVM(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for _, longest := range []uint64{8, 4000} {
		var m reachMap
		var model llvmMap
		for i := range uint32(3000) {
			lo := r.Uint64N(1 << 13)
			s := span{lo, lo + 1 + r.Uint64N(longest), i, i}
			model.insert(s)
			m.give(reach{s.lo, s.hi, 0, i})
		}
		if len(m) < 4 {
			t.Fatalf("%d pieces: too few", len(m))
		}
		all := slices.Concat(m...)
		for addr := range uint64(1 << 14) {
			got := -1
			if i := above(all, addr) - 1; i >= 0 && addr < all[i].hi {
				got = int(all[i].call)
			}
			if want := model.find(addr); got != want {
				t.Fatalf("address %d: got %d, want %d", addr, got, want)
			}
		}
	}
}
