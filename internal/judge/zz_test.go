package judge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

type callGraph struct {
	m       *Image
	returns []uint64
	callers map[uint64][]uint64 // return addresses by start of called function
}

func graphOf(t *testing.T, path string) *callGraph {
	file, err := os.Open(path)
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { file.Close() })
	info, _ := file.Stat()
	f, err := object.Open(file, info.Size(), file)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	g := &callGraph{m: &Image{Path: path, File: f, Segments: f.Segments(), Given: true}, callers: map[uint64][]uint64{}}
	text, _ := f.Section(".text")
	for addr := text.Addr + 1; addr < text.Addr+text.Size; addr++ {
		if yes, _ := f.CallEndsAt(addr); yes {
			if target, ok := f.CallTarget(addr); ok {
				if s, _, ok := f.UnwindRange(target); ok && s == target {
					g.callers[target] = append(g.callers[target], addr)
					g.returns = append(g.returns, addr)
				}
			} else {
				g.returns = append(g.returns, addr)
			}
		}
	}
	return g
}

func (g *callGraph) stack(rng *rand.Rand, n int) (addrs []uint64) {
	for len(addrs) < n {
		at := g.returns[rng.IntN(len(g.returns))]
		addrs = append(addrs, at)
		for len(addrs) < n && rng.IntN(5) > 0 {
			s, _, ok := g.m.File.UnwindRange(at - 1)
			c := g.callers[s]
			if !ok || len(c) == 0 {
				break
			}
			at = c[rng.IntN(len(c))]
			addrs = append(addrs, at)
		}
	}
	return addrs
}

func TestZZ(t *testing.T) {
	for _, p := range strings.Fields(os.Getenv("ZZ")) {
		g := graphOf(t, p)
		rng := rand.New(rand.NewPCG(1, 2))
		fmt.Printf("%s: code %d returns %d direct %d\n", p, g.m.codeSize(), len(g.returns), len(g.callers))
		for _, n := range []int{3, 4, 5, 6, 8, 10} {
			found, wrong, minBits, maxSecond := 0, 0, 1e9, 0
			var links int
			start := time.Now()
			const trials = 200
			for range trials {
				bias := 0x550000000000 + rng.Uint64N(1<<36)<<12
				var frames []*Frame
				for i, a := range g.stack(rng, n) {
					frames = append(frames, frame(dialect.Frame{Dialect: glibc, Number: i, LoggedPlace: dialect.LoggedPlace{Kind: dialect.Runtime, Addr: a + bias, Value: a + bias}}))
				}
				tr := &Trace{Unnamed: func() []*Image { return []*Image{g.m} }, Memory: &Memory{}}
				v := &verdict{image: g.m}
				tr.infer(v, frames)
				if v.biased {
					if v.bias == bias {
						found++
					} else {
						wrong++
					}
				}
				minBits = min(minBits, v.inference.Bits)
				maxSecond = max(maxSecond, v.inference.RunnerUp)
				links += v.inference.Links
			}
			fmt.Printf("  %d frames: found %d wrong %d minbits %.0f second %d links %.1f  %v each\n", n, found, wrong, minBits, maxSecond, float64(links)/trials, time.Since(start)/trials)
		}
	}
}
