package judge

import (
	"math/rand/v2"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
)

// A mapping at a predictable address must locate only stacks that prove it. Another program, whose
// maps were never read, may have been loaded at the same address.
func TestPredictableMappingsNeedProof(t *testing.T) {
	m, returns := thisProgram(t)
	text, _ := m.File.Section(".text")
	rng := rand.New(rand.NewPCG(7, 8))
	some := func(n int) []uint64 { return draw(rng, returns, n) }
	foreign := func(n int) (addrs []uint64) {
		for range n {
			addrs = append(addrs, text.Addr+rng.Uint64N(text.Size))
		}
		return addrs
	}
	const library = 0x7f0012345678
	calling := func(n int) (addrs []uint64) { // each frame has called a library
		for _, addr := range some(n) {
			addrs = append(addrs, library, addr)
		}
		return addrs
	}
	for _, c := range []struct {
		name        string
		stacks      [][]uint64
		predictable bool
		want        []int // located frames of each stack
	}{
		{"a stack that contradicts the mapping", [][]uint64{append(some(2), text.Addr+1)}, false, []int{0}},
		{"a stack with a frame of garbage", [][]uint64{append(some(5), text.Addr+1)}, false, []int{5}},
		{"a random address", [][]uint64{some(1)}, false, []int{1}},
		{"one frame", [][]uint64{some(1)}, true, []int{0}},
		{"too few calls", [][]uint64{some(5)}, true, []int{0}},
		{"enough calls", [][]uint64{some(8)}, true, []int{8}},
		{"enough calls of a library", [][]uint64{calling(8)}, true, []int{8}},
		{"another stack of the trace", [][]uint64{some(8), some(1)}, true, []int{8, 0}},
		{"another program", [][]uint64{foreign(8)}, true, []int{0}},
		{"frames of another program among them", [][]uint64{append(some(8), foreign(8)...)}, true, []int{0}},
	} {
		var frames []*Frame
		for _, addrs := range c.stacks {
			frames = append(frames, framesOf(0, addrs)...)
		}
		trace := Trace{
			Open: func(*dialect.Frame) *Image { return m },
			Mapped: func(addr uint64) *ProcessMap {
				if addr == library {
					return nil
				}
				return &ProcessMap{Base: text.Addr &^ (pageSize - 1), Path: m.Path, PID: 7, Predictable: c.predictable, Open: func() *Image { return m }}
			},
		}
		trace.Judge(frames, &dialect.Facts{})
		for i, addrs := range c.stacks {
			if found, wrong := located(frames[:len(addrs)], addrs); found != c.want[i] || wrong > 0 {
				t.Errorf("%s: stack %d has %d located frames, %d of them wrong; want %d", c.name, i, found, wrong, c.want[i])
			}
			frames = frames[len(addrs):]
		}
	}
}
