package object

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestSortByAddrIsAStableSort(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 300 {
		mask := r.Uint64() >> r.UintN(64) << r.UintN(64)
		entries := make([]symbolEntry, r.IntN(500))
		for i := range entries {
			entries[i] = symbolEntry{r.Uint64() & mask, uint32(i)}
		}
		want := slices.Clone(entries)
		slices.SortStableFunc(want, func(a, b symbolEntry) int {
			switch {
			case a.addr < b.addr:
				return -1
			case a.addr > b.addr:
				return 1
			}
			return 0
		})
		sortByAddr(entries)
		if d := cmp.Diff(entries, want, cmp.AllowUnexported(symbolEntry{})); d != "" {
			t.Fatalf("addresses of the bits %#x (-got +want)\n%s", mask, d)
		}
	}
}
