package judge

import (
	"math/rand/v2"
	"testing"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/testenv"
)

// In a sample of positions, calls must lead to the next frame by coincidence about as often as in
// all positions.
func TestSampledLinksAreAsRareAsAll(t *testing.T) {
	const path = "/lib/x86_64-linux-gnu/libc.so.6"
	testenv.Need(t, path)
	g := graphOf(t, path)
	e := election{image: g.m}
	rng := rand.New(rand.NewPCG(25, 26))
	var sampled, places, linked, all int
	text, _ := g.m.File.Section(".text")
	for range 12 {
		outer := g.returns[rng.IntN(len(g.returns))]
		inner := outer - 48 // a near function, the most frequent target
		frames := framesOf(0, []uint64{inner, outer})
		n, tried := e.countLinks(frames[1], frames[0])
		sampled, places = sampled+n, places+tried
		for at := text.Addr + (outer-text.Addr)%16; at < text.Addr+text.Size; at += 16 {
			if at > text.Addr {
				all++
				if size := g.m.calledSize(g.m.callEnd(at, dialect.Return), g.m, at-49); size > 0 {
					linked++
				}
			}
		}
	}
	one, other := float64(sampled)/float64(places), float64(linked)/float64(all)
	t.Logf("%d of %d sampled places, %d of all %d", sampled, places, linked, all)
	if linked == 0 || one < other/2 || one > other*2 {
		t.Errorf("a link at %.5f of the sampled places, at %.5f of all", one, other)
	}
}
