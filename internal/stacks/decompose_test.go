package stacks

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sketch returns a call graph of functions whose names are single letters. In text, "a 3" is a cost
// of a, and "a>b 3" the cost of its calls to b.
func sketch(t *testing.T, p *Profile, text string) (g *Graph, costs func(value int, sinks, arcs []int64)) {
	t.Helper()
	g = &Graph{}
	locations := map[string]uint32{}
	node := func(name string) uint32 {
		f := p.AddFunction(Function{Name: name})
		g.Nodes = max(g.Nodes, int(f))
		locations[name] = p.AddLocation(Location{Lines: []Line{{Function: f}}})
		return f - 1
	}
	var sinks, arcs []int64
	for line := range strings.SplitSeq(strings.TrimSpace(text), ", ") {
		var name string
		var n int64
		if _, err := fmt.Sscan(line, &name, &n); err != nil {
			t.Fatal(err)
		}
		if from, to, ok := strings.Cut(name, ">"); ok {
			g.Arcs = append(g.Arcs, Arc{node(from), node(to), locations[from]})
			arcs = append(arcs, n)
		} else {
			g.Sinks = append(g.Sinks, Sink{node(name), locations[name]})
			sinks = append(sinks, n)
		}
	}
	return g, func(_ int, s, a []int64) {
		copy(s, sinks)
		copy(a, arcs)
	}
}

func TestCallGraphsBecomeStacks(t *testing.T) {
	for _, test := range []struct{ name, graph, want string }{
		{"a tree", "a 1, a>b 2, b 2, a>c 7, c 3, c>d 4, d 4", `
a 1
a;b 2
a;c 3
a;c;d 4
`},
		{"several callers: the calls are divided in proportion", "a>c 60, b>c 40, c 0, c>d 50, c>e 50, d 50, e 50", `
a;c;d 30
a;c;e 30
b;c;d 20
b;c;e 20
`},
		{"a recursive function", "m 1, m>f 100, f>f 300, f 100", `
m 1
m;f 100
`},
		{"functions that call each other", "m>a 100, a>b 250, b>a 200, a 50, b 50", `
m;a 50
m;a;b 50
`},
		{"two ways around a cycle", "m>a 10, a>b 7, a>c 7, b>a 3, c>a 4, b 4, c 3, a 3", `
m;a 3
m;a;b 4
m;a;c 3
`},
		{"calls that cost more than what they lead to", "a>b 10, b 7, a 1", `
a 1
a;b 7
`},
		{"functions that cost more than their calls", "a>b 10, b 17, a 1, b>c 5, c 5", `
a 1
a;b 10
b 7
b;c 5
`},
		{"costs below 0", "a>b -3, b -3, a>c 9, c 9, a 1, b 0", `
a 1
a;b -3
a;c 9
`},
		{"a function that gains and loses", "a>b 2, b 5, b>c -3, c -3", `
a;b 2
b 3
b;c -3
`},
		{"sums beyond int64", fmt.Sprint("a>b ", int64(math.MaxInt64), ", b ", int64(math.MaxInt64), ", a 5"), fmt.Sprintf(`
a 5
b %d
`, int64(math.MaxInt64))},
		{"the smallest cost", fmt.Sprint("a>b 1, b ", int64(math.MinInt64)), fmt.Sprintf(`
b %d
`, -int64(math.MaxInt64))},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := &Profile{Values: []ValueType{{"n", "count"}}}
			g, costs := sketch(t, p, test.graph)
			Decompose(p, g, costs, 1000)
			if diff := cmp.Diff(test.want[1:], folded(t, p)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func folded(t *testing.T, p *Profile) string {
	t.Helper()
	var out strings.Builder
	if err := p.WriteFolded(&out, 0); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestStacksBeginWithKnownCallers(t *testing.T) {
	p := &Profile{Values: []ValueType{{"n", "count"}}}
	g, costs := sketch(t, p, "x 0, y 0, a 1, a>b 2, b 5")
	g.Above = func(node uint32) []uint32 {
		if node == 3 { // called by y, which x called
			return []uint32{2, 1}
		}
		return nil
	}
	Decompose(p, g, costs, 1000)
	if diff := cmp.Diff("a 1\na;b 2\nx;y;b 3\n", folded(t, p)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestStacksHaveBoundedLength(t *testing.T) {
	p := &Profile{Values: []ValueType{{"n", "count"}}}
	g, costs := sketch(t, p, "a 1, a>b 9, b 2, b>c 7, c 3, c>d 4, d 4")
	loss := Decompose(p, g, costs, 6)
	if diff := cmp.Diff("a 1\na;b 2\na;b;c 3\nd 4\n", folded(t, p)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff(Loss{Recursion: []int64{0}, Unplaced: []int64{4}}, loss); diff != "" {
		t.Errorf("loss: -want +got\n%s", diff)
	}
}

// A run holds the costs of a random program, as a profiler counts them.
type run struct {
	functions   int
	self, calls map[[2]uint32]int64 // by function and line; by caller and callee
}

// execute runs a function with random costs and calls, and returns its cost.
func (r *run) execute(rng *rand.Rand, f, depth int) int64 {
	cost := int64(0)
	for range rng.IntN(4) {
		n := rng.Int64N(1000)
		r.self[[2]uint32{uint32(f), rng.Uint32N(3)}] += n
		cost += n
	}
	for range rng.IntN(6) {
		if depth == 0 {
			break
		}
		// usually one of the next functions, sometimes any function
		to := min(r.functions-1, f+1+rng.IntN(4))
		if rng.IntN(10) == 0 {
			to = rng.IntN(r.functions)
		}
		n := r.execute(rng, to, depth-1)
		r.calls[[2]uint32{uint32(f), uint32(to)}] += n
		cost += n
	}
	return cost
}

// graph returns the call graph of the run, and its costs.
func (r *run) graph(p *Profile) (g *Graph, sinks, arcs []int64) {
	g = &Graph{Nodes: r.functions}
	keys := func(m map[[2]uint32]int64) [][2]uint32 {
		var all [][2]uint32
		for k := range m {
			all = append(all, k)
		}
		slices.SortFunc(all, func(a, b [2]uint32) int { return slices.Compare(a[:], b[:]) })
		return all
	}
	location := func(f, line uint32) uint32 {
		n := p.AddFunction(Function{Name: fmt.Sprint("f", f)})
		return p.AddLocation(Location{Lines: []Line{{Function: n, Line: int64(line)}}})
	}
	for _, k := range keys(r.self) {
		g.Sinks = append(g.Sinks, Sink{k[0], location(k[0], k[1])})
		sinks = append(sinks, r.self[k])
	}
	for _, k := range keys(r.calls) {
		g.Arcs = append(g.Arcs, Arc{k[0], k[1], location(k[0], 10)})
		arcs = append(arcs, r.calls[k])
	}
	return g, sinks, arcs
}

// cyclic reports for each arc whether its callee can reach its caller.
func cyclic(g *Graph) []bool {
	reach := make([]map[uint32]bool, g.Nodes)
	next := make([][]uint32, g.Nodes)
	for _, a := range g.Arcs {
		next[a.From] = append(next[a.From], a.To)
	}
	for n := range reach {
		reach[n] = map[uint32]bool{uint32(n): true}
		for todo := []uint32{uint32(n)}; len(todo) > 0; {
			at := todo[0]
			todo = todo[1:]
			for _, to := range next[at] {
				if !reach[n][to] {
					reach[n][to] = true
					todo = append(todo, to)
				}
			}
		}
	}
	all := make([]bool, len(g.Arcs))
	for i, a := range g.Arcs {
		all[i] = reach[a.To][a.From]
	}
	return all
}

// nodeOf returns the number of the function at a location.
func nodeOf(t *testing.T, p *Profile, location uint32) uint32 {
	t.Helper()
	var n uint32
	if _, err := fmt.Sscanf(p.Functions[p.Locations[location-1].Lines[0].Function-1].Name, "f%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestSelfCostsAndCallsAreExact(t *testing.T) {
	recursive := 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		r := &run{functions: 2 + rng.IntN(30), self: map[[2]uint32]int64{}, calls: map[[2]uint32]int64{}}
		for range 1 + rng.IntN(3) {
			r.execute(rng, rng.IntN(2), 1+rng.IntN(9))
		}
		p := &Profile{Values: []ValueType{{"n", "count"}}}
		g, sinks, arcs := r.graph(p)
		loss := Decompose(p, g, func(_ int, s, a []int64) { copy(s, sinks); copy(a, arcs) }, 1<<20)
		if loss.Unplaced[0] != 0 {
			t.Fatalf("seed %d: %d is not placed", seed, loss.Unplaced[0])
		}
		if len(p.Samples) > len(g.Arcs)+len(g.Sinks) {
			t.Errorf("seed %d: %d stacks of %d arcs and %d places", seed, len(p.Samples), len(g.Arcs), len(g.Sinks))
		}
		self, calls := map[uint32]int64{}, map[[2]uint32]int64{}
		for _, s := range p.Samples {
			self[s.Stack[0]] += s.Values[0]
			for i := range s.Stack[1:] {
				calls[[2]uint32{nodeOf(t, p, s.Stack[i+1]), nodeOf(t, p, s.Stack[i])}] += s.Values[0]
			}
		}
		for i, s := range g.Sinks {
			if self[s.Location] != sinks[i] {
				t.Errorf("seed %d: location %d has %d, want %d", seed, s.Location, self[s.Location], sinks[i])
			}
		}
		for i, in := range cyclic(g) {
			a := g.Arcs[i]
			got := calls[[2]uint32{a.From, a.To}]
			if in {
				recursive++
			} else if got != arcs[i] {
				t.Errorf("seed %d: calls from %d to %d have %d, want %d", seed, a.From, a.To, got, arcs[i])
			}
		}
	}
	if recursive < 1000 {
		t.Errorf("only %d calls were recursive", recursive)
	}
}

// In the sum of all stacks, each sink must have its own cost, even if the costs in the graph do not
// add up.
func TestSelfCostsAreExactIfCostsDoNotAddUp(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		p := &Profile{Values: []ValueType{{"n", "count"}, {"m", "count"}}}
		g := &Graph{Nodes: 1 + rng.IntN(12)}
		var sinks, arcs [2][]int64
		cost := func() int64 {
			n := rng.Int64N(100)
			switch rng.IntN(10) {
			case 0:
				n = -n
			case 1:
				n = 0
			case 2:
				n = rng.Int64() >> rng.IntN(40)
			}
			return n
		}
		for range rng.IntN(20) {
			n := rng.Uint32N(uint32(g.Nodes))
			f := p.AddFunction(Function{Name: fmt.Sprint("f", n)})
			g.Sinks = append(g.Sinks, Sink{n, p.AddLocation(Location{Lines: []Line{{Function: f, Line: int64(len(g.Sinks))}}})})
		}
		for range rng.IntN(40) {
			n := rng.Uint32N(uint32(g.Nodes))
			f := p.AddFunction(Function{Name: fmt.Sprint("f", n)})
			g.Arcs = append(g.Arcs, Arc{n, rng.Uint32N(uint32(g.Nodes)), p.AddLocation(Location{Lines: []Line{{Function: f}}})})
		}
		for v := range 2 {
			for range g.Sinks {
				sinks[v] = append(sinks[v], cost())
			}
			for range g.Arcs {
				arcs[v] = append(arcs[v], cost())
			}
		}
		Decompose(p, g, func(v int, s, a []int64) { copy(s, sinks[v]); copy(a, arcs[v]) }, rng.IntN(200))
		for v := range 2 {
			self := map[uint32]int64{}
			for _, s := range p.Samples {
				self[s.Stack[0]] += s.Values[v]
			}
			for i, s := range g.Sinks {
				if self[s.Location] != sinks[v][i] {
					t.Errorf("seed %d: location %d has %d of value %d, want %d", seed, s.Location, self[s.Location], v, sinks[v][i])
				}
			}
		}
	}
}

func TestLongNamesCountAsSeveralFrames(t *testing.T) {
	p := &Profile{Values: []ValueType{{"n", "count"}}}
	g, costs := sketch(t, p, "a 1, a>b 9, b 2, b>c 7, c 7")
	p.Functions[1].Name = strings.Repeat("b", 300)
	g.Weights = p.FoldedWeight()
	if diff := cmp.Diff([]int{1, 3, 1}, g.Weights); diff != "" {
		t.Errorf("weights: -want +got\n%s", diff)
	}
	Decompose(p, g, costs, 1+4+4)
	if diff := cmp.Diff("a 1\na;b 2\nc 7\n", strings.ReplaceAll(folded(t, p), p.Functions[1].Name, "b")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
