package stacks

import (
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// compilerGraph returns a call graph as large as that of GCC's cc1plus for a small C++ source:
// 8,517 functions and 27,258 calls, some of which are recursive.
func compilerGraph(p *Profile) (g *Graph, sinks, arcs []int64) {
	const functions, calls = 8517, 27258
	rng := rand.New(rand.NewPCG(7, 7))
	g = &Graph{Nodes: functions}
	var location [functions]uint32
	for i := range location {
		f := p.AddFunction(Function{Name: fmt.Sprint("function", i), File: fmt.Sprint("file", i/20)})
		location[i] = p.AddLocation(Location{Lines: []Line{{Function: f, Line: int64(i)}}})
	}
	sinks = make([]int64, functions)
	out := make([]int64, functions) // cost of each function with its callees
	for i := functions - 1; i >= 0; i-- {
		g.Sinks = append(g.Sinks, Sink{uint32(i), location[i]})
		sinks[functions-1-i] = 1 + rng.Int64N(1<<rng.IntN(20))
		out[i] += sinks[functions-1-i]
		for n := (calls - functions/8 - len(g.Arcs)) / (i + 1); n > 0 && i > 0; n-- {
			from := max(0, i-1-rng.IntN(40+i/8))
			cost := out[i]
			if n > 1 {
				cost /= int64(n)
			}
			out[i] -= cost
			out[from] += cost
			g.Arcs = append(g.Arcs, Arc{uint32(from), uint32(i), location[from]})
			arcs = append(arcs, cost)
		}
	}
	for len(g.Arcs) < calls { // recursive calls
		n := rng.Uint32N(functions)
		g.Arcs = append(g.Arcs, Arc{n, n, location[n]})
		arcs = append(arcs, rng.Int64N(1000))
	}
	return g, sinks, arcs
}

func BenchmarkDecompose(b *testing.B) {
	p := &Profile{Values: []ValueType{{"Ir", "count"}}}
	g, sinks, arcs := compilerGraph(p)
	for b.Loop() {
		p.Samples, p.index = nil, index{}
		Decompose(p, g, func(_ int, s, a []int64) { copy(s, sinks); copy(a, arcs) }, 1<<25)
		if err := p.WritePprof(io.Discard); err != nil {
			b.Fatal(err)
		}
	}
	frames := 0
	for _, s := range p.Samples {
		frames += len(s.Stack)
	}
	b.ReportMetric(float64(len(p.Samples)), "stacks")
	b.ReportMetric(float64(frames), "frames")
}

// A decomposition must allocate its memory in few large pieces, and must not make more stacks than
// the graph has arcs and sinks.
func TestDecompositionOfALargeGraphTakesFewAllocations(t *testing.T) {
	fuzztest.WithoutRace(t)
	p := &Profile{Values: []ValueType{{"Ir", "count"}}}
	g, sinks, arcs := compilerGraph(p)
	n := testing.AllocsPerRun(1, func() {
		p.Samples, p.index = nil, index{}
		Decompose(p, g, func(_ int, s, a []int64) { copy(s, sinks); copy(a, arcs) }, 1<<25)
	})
	if n > 1500 {
		t.Errorf("%v allocations", n)
	}
	if len(p.Samples) > len(g.Arcs)+len(g.Sinks) || len(p.Samples) < 20_000 {
		t.Errorf("%d stacks of %d calls and %d places", len(p.Samples), len(g.Arcs), len(g.Sinks))
	}
}

// If cycles take too long to remove, or chains of calls need too many frames, the stacks may lack
// calls. The sum of their costs must not change.
func TestHostileGraphsKeepTheirCosts(t *testing.T) {
	fuzztest.WithoutRace(t)
	const n = 60_000
	p := &Profile{Values: []ValueType{{"Ir", "count"}}}
	g := &Graph{Nodes: n}
	f := p.AddFunction(Function{Name: "f"})
	for i := range uint32(n) {
		at := p.AddLocation(Location{Address: uint64(i) + 1, Lines: []Line{{Function: f}}})
		g.Sinks = append(g.Sinks, Sink{i, at})
		if i+1 < n {
			g.Arcs = append(g.Arcs, Arc{i, i + 1, at}, Arc{n - 1, i, at})
		}
	}
	loss := Decompose(p, g, func(_ int, s, a []int64) {
		for i := range s {
			s[i] = 1
		}
		for i := range a {
			a[i] = 1 + int64(i+1)%2*1_000_000
		}
	}, 1<<20)
	if total := p.Totals()[0]; total != n {
		t.Errorf("the stacks cost %d, want %d", total, n)
	}
	if loss.Recursion[0] == 0 || loss.Unplaced[0] == 0 {
		t.Errorf("loss %+v", loss)
	}
	frames := 0
	for _, s := range p.Samples {
		frames += len(s.Stack)
	}
	if frames > 1<<20+n {
		t.Errorf("%d frames", frames)
	}
}
