package judge

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/dialect"
)

// A repeated trace must be searched only once, wherever its module is loaded. It must be searched
// again for another file, and if the distances between its addresses differ.
func TestATraceIsSearchedOnce(t *testing.T) {
	m, returns := thisProgram(t)
	rng := rand.New(rand.NewPCG(5, 6))
	var addrs []uint64
	for range 12 {
		addrs = append(addrs, returns[rng.IntN(len(returns))])
	}
	others := append([]uint64{returns[0]}, addrs[1:]...)
	type outcome struct {
		Bias     uint64
		Located  int
		Searched bool
	}
	var got []outcome
	var memory Memory
	for _, test := range []struct {
		bias  uint64
		state string
		addrs []uint64
	}{
		{0x7f0000000000, "1", addrs},
		{0x7f0000000000, "1", addrs},
		{0x5500000ff000, "1", addrs},
		{0x7f0000000000, "2", addrs}, // the file was replaced
		{0x7f0000000000, "2", others},
		{0x7f0000000000, "1", addrs},
	} {
		image := *m
		image.State = test.state
		trace := Trace{Open: func(*dialect.Frame) *Image { return &image }, Memory: &memory}
		frames := framesOfModule(m.Path, test.bias, test.addrs)
		trace.Judge(frames, &dialect.Facts{})
		got = append(got, outcome{frames[0].Addr - frames[0].Place.Addr - 1, placed(frames), trace.worked > 0})
	}
	want := []outcome{
		{0x7f0000000000, 12, true}, {0x7f0000000000, 12, false}, {0x5500000ff000, 12, false},
		{0x7f0000000000, 12, true}, {0x7f0000000000, 12, true}, {0x7f0000000000, 12, false},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// A recent must keep entries that are used, and drop the rest.
func TestMemoriesAreBounded(t *testing.T) {
	const most = 10
	var r recent[int, string]
	for i := range 100 {
		r.put(i, "some", most)
		r.get(0, most)
		if n := len(r.young) + len(r.old); n > 2*most {
			t.Fatalf("%d entries after %d, want at most %d", n, i, 2*most)
		}
	}
	got := make(map[int]bool)
	for _, i := range []int{0, 99, 99 - most + 2, 50} {
		_, got[i] = r.get(i, most)
	}
	if diff := cmp.Diff(map[int]bool{0: true, 99: true, 99 - most + 2: true, 50: false}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
