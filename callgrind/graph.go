package callgrind

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"github.com/symfilter/symfilter/internal/stacks"
)

// A graph holds the functions of a profile with their costs, and the calls between them.
type graph struct {
	*resolution
	width int
	total []int64

	signed []bool // by event: some costs are negative, and a part may exceed the whole

	cycle   []uint32 // by node: number of its cycle; each node outside of cycles has its own
	members []uint32 // by cycle: number of its nodes
	cycleOf []uint32 // by cycle: number shown, from 1; 0 for a single node
	whole   []int64  // by cycle and event: the cost of the cycle, with calls to functions outside

	self, inclusive []int64 // by node and event
	calls           []int64 // by node: number of calls
	// by node: inclusive and calls are approximate, since stripped tail calls hide some calls
	approximate []bool
	edges       []edge        // sorted by caller, then by callee
	costs       []int64       // by edge and event
	from, to    stacks.Groups // edges from each node, and to it
	placesOf    stacks.Groups // places of each node; zero until needed
}

// An edge sums all calls from one function to another.
type edge struct {
	from, to uint32
	count    int64
	implied  bool // not a call in the profile: see impliedCall
}

func (g *graph) selfOf(n uint32) []int64   { return g.self[int(n)*g.width:][:g.width] }
func (g *graph) inclOf(n uint32) []int64   { return g.inclusive[int(n)*g.width:][:g.width] }
func (g *graph) edgeCost(e uint32) []int64 { return g.costs[int(e)*g.width:][:g.width] }

func (g *graph) callees(n uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for e := g.from.First[n]; e < g.from.First[n+1] && yield(e); e++ {
		}
	}
}

func (g *graph) callersOf(n uint32) []uint32 { return g.to.Of(n) }

// A part is added to an edge: the calls from one place, or the costs of an implied call.
type part struct {
	from, to uint32
	index    uint32 // index in model.calls or in resolution.implied
	implied  bool
}

func newGraph(v *resolution, total []int64) *graph {
	m := v.m
	g := &graph{resolution: v, width: m.costs.width, total: total}
	n := len(v.all)
	g.self = make([]int64, n*g.width)
	g.signed = make([]bool, g.width)
	g.sign(m.costs.counts, g.width)
	g.sign(m.calls.counts, g.width+1)
	g.approximate = make([]bool, n)
	for i := range m.costs.keys {
		stacks.AddTo(g.selfOf(v.ofPlace[i]), m.costs.countsOf(i))
	}
	// without addresses, a tail call may be missing from the calls of any stripped function
	if !m.addresses() {
		for i, f := range m.functions {
			if _, _, hex := entry(m.r.Text(f.name)); hex && v.needy[i] {
				g.approximate[v.ofFunction[i]] = true
			}
		}
	}
	parts := make([]part, 0, len(m.calls.keys))
	for i := range m.calls.keys {
		k := &m.calls.keys[i]
		parts = append(parts, part{from: v.ofPlace[k.from], to: v.ofFunction[k.to], index: uint32(i)})
	}
	for i := range v.implied {
		c := &v.implied[i]
		g.approximate[c.to] = true
		parts = append(parts, part{from: c.from, to: c.to, index: uint32(i), implied: true})
	}
	g.connect(parts)
	g.include()
	return g
}

// sign sets g.signed for each event with a negative cost in rows. A row has width numbers; the last
// g.width of them are costs.
func (g *graph) sign(rows []int64, width int) {
	for i, n := range rows {
		if e := i%width - (width - g.width); n < 0 && e >= 0 {
			g.signed[e] = true
		}
	}
}

// connect makes the edges of g: parts with the same ends become one edge.
func (g *graph) connect(parts []part) {
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.index, b.index))
	})
	for i := range parts {
		p := &parts[i]
		if i == 0 || parts[i-1].from != p.from || parts[i-1].to != p.to {
			g.edges = append(g.edges, edge{from: p.from, to: p.to})
			g.costs = append(g.costs, make([]int64, g.width)...)
		}
		at := len(g.edges) - 1
		e := &g.edges[at]
		if p.implied {
			c := &g.implied[p.index]
			stacks.AddTo(g.edgeCost(uint32(at)), c.costs)
			e.implied = true
			e.count = stacks.Plus(e.count, c.count)
			continue
		}
		c := g.m.calls.countsOf(int(p.index))
		e.count = stacks.Plus(e.count, c[0])
		stacks.AddTo(g.edgeCost(uint32(at)), c[1:])
	}
	n := len(g.all)
	g.calls = make([]int64, n)
	for _, e := range g.edges {
		g.calls[e.to] = stacks.Plus(g.calls[e.to], e.count)
	}
	g.from = stacks.GroupBy(n, len(g.edges), func(i int) uint32 { return g.edges[i].from })
	g.to = stacks.GroupBy(n, len(g.edges), func(i int) uint32 { return g.edges[i].to })
}

// include computes the inclusive costs as callgrind_annotate does. A function has the costs of
// all calls by other functions. Without such calls, it has its own cost plus the costs of its
// calls. If the profile has several parts, the larger sum is used, except in cycles. In a
// cycle, a function costs at most the whole cycle, since nested calls are counted several
// times.
func (g *graph) include() {
	n := uint32(len(g.all))
	g.inclusive = make([]int64, int(n)*g.width)
	cycle, count := g.cycles()
	members := make([]uint32, count)
	for i := range n {
		members[cycle[i]]++
	}
	g.cycle, g.members, g.cycleOf = cycle, members, make([]uint32, count)
	shown := uint32(0)
	for i := range n { // in the order of the profile
		if c := cycle[i]; members[c] > 1 && g.cycleOf[c] == 0 {
			shown++
			g.cycleOf[c] = shown
		}
	}
	whole := g.wholes(cycle, members)
	g.whole = whole
	limit := g.limits()
	called := make([]int64, g.width)
	for i := range n {
		incl := g.inclOf(i)
		clear(called)
		some := false
		for _, e := range g.callersOf(i) {
			if g.edges[e].from != i {
				some = true
				stacks.AddTo(called, g.edgeCost(e))
			}
		}
		copy(incl, g.selfOf(i))
		for e := range g.callees(i) {
			if g.edges[e].to != i {
				stacks.AddTo(incl, g.edgeCost(e))
			}
		}
		if some && (g.m.head.parts == 1 || members[cycle[i]] > 1) {
			copy(incl, called) // as callgrind_annotate does
		} else if some {
			for e := range incl { // a call that spans several parts is in none of them
				incl[e] = max(incl[e], called[e])
			}
		}
		if members[cycle[i]] > 1 {
			// the function may have no caller, like the first function of a thread
			for e, n := range g.selfOf(i) {
				incl[e] = max(incl[e], n)
			}
			w := whole[int(cycle[i])*g.width:][:g.width]
			for e := range incl {
				if !g.signed[e] {
					incl[e] = min(incl[e], w[e])
				}
			}
		}
		for e := range incl {
			incl[e] = min(incl[e], limit[e])
		}
	}
	for i := range g.edges {
		e := &g.edges[i]
		g.limit(g.edgeCost(uint32(i)), e.from, e.to)
	}
}

// limit caps the cost of calls inside a cycle at the inclusive costs of both functions, since
// nested calls are counted several times. Events with negative costs are not capped.
func (g *graph) limit(costs []int64, from, to uint32) {
	if g.cycle[from] != g.cycle[to] {
		return
	}
	a, b := g.inclOf(from), g.inclOf(to)
	for e := range costs {
		if !g.signed[e] {
			costs[e] = min(costs[e], a[e], b[e])
		}
	}
}

// cycleNumber returns the number of a node's cycle, from 1, or 0 for a node outside of all cycles.
func (g *graph) cycleNumber(n uint32) uint32 { return g.cycleOf[g.cycle[n]] }

// wholes returns the cost of each cycle: the own costs of its functions, and the costs of their
// calls to functions outside. For a function outside of all cycles, the cost is 0.
func (g *graph) wholes(cycle, members []uint32) []int64 {
	whole := make([]int64, len(members)*g.width)
	for i := range uint32(len(g.all)) {
		if members[cycle[i]] < 2 {
			continue
		}
		w := whole[int(cycle[i])*g.width:][:g.width]
		stacks.AddTo(w, g.selfOf(i))
		for e := range g.callees(i) {
			if cycle[g.edges[e].to] != cycle[i] {
				stacks.AddTo(w, g.edgeCost(e))
			}
		}
	}
	return whole
}

// limits returns the largest possible cost of a function, by event: the profile's total, or the
// sum of all own costs if larger. Events with negative costs have no limit.
func (g *graph) limits() []int64 {
	all := make([]int64, g.width)
	for i := range g.all {
		stacks.AddTo(all, g.selfOf(uint32(i)))
	}
	for e := range all {
		all[e] = max(all[e], g.total[e])
		if g.signed[e] {
			all[e] = math.MaxInt64
		}
	}
	return all
}

// cycles numbers the cycles of the graph (Tarjan's algorithm). It returns the number of each node's
// cycle, and the number of cycles. A node outside of all cycles counts as a cycle.
func (g *graph) cycles() (of []uint32, count uint32) {
	n := uint32(len(g.all))
	of = make([]uint32, n)
	number, low := make([]uint32, n), make([]uint32, n) // from 1; 0 if not visited yet
	on := make([]bool, n)
	type visit struct{ node, edge uint32 }
	var stack []uint32
	var path []visit
	seen := uint32(0)
	for root := range n {
		if number[root] != 0 {
			continue
		}
		path = append(path[:0], visit{root, g.from.First[root]})
		for len(path) > 0 {
			at := &path[len(path)-1]
			v := at.node
			if number[v] == 0 {
				seen++
				number[v], low[v] = seen, seen
				stack = append(stack, v)
				on[v] = true
			}
			if at.edge < g.from.First[v+1] {
				w := g.edges[at.edge].to
				at.edge++
				if number[w] == 0 {
					path = append(path, visit{w, g.from.First[w]})
				} else if on[w] {
					low[v] = min(low[v], number[w])
				}
				continue
			}
			path = path[:len(path)-1]
			if len(path) > 0 {
				up := path[len(path)-1].node
				low[up] = min(low[up], low[v])
			}
			if low[v] != number[v] {
				continue
			}
			for {
				w := stack[len(stack)-1]
				stack = stack[:len(stack)-1]
				on[w] = false
				of[w] = count
				if w == v {
					break
				}
			}
			count++
		}
	}
	return of, count
}
