package callgrind

import (
	"cmp"
	"iter"
	"math"
	"slices"
)

// A graph is the functions of a profile with their costs, and who calls whom.
type graph struct {
	*resolution
	width int
	total []int64

	signed []bool // events some of whose costs are below zero: a part may be more than the whole

	self, inclusive []int64 // by node
	calls           []int64 // how often each was called
	approximate     []bool  // inclusive and calls are: a stripped tail call hides how it was called
	edges           []edge  // by caller, then by function called
	costs           []int64 // of the edges
	callers         []uint32
	firstCallee     []uint32 // of each node, in edges; one more at the end
	firstCaller     []uint32 // likewise, in callers
	placesOf        []uint32 // the places of each node, when they were asked for
	firstPlace      []uint32
}

// An edge is all calls from one function to another.
type edge struct {
	from, to uint32
	count    int64
	implied  bool // the profile does not have it: the code of one is in the other
}

func (g *graph) selfOf(n uint32) []int64   { return g.self[int(n)*g.width:][:g.width] }
func (g *graph) inclOf(n uint32) []int64   { return g.inclusive[int(n)*g.width:][:g.width] }
func (g *graph) edgeCost(e uint32) []int64 { return g.costs[int(e)*g.width:][:g.width] }

// callees yields the edges from a node.
func (g *graph) callees(n uint32) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for e := g.firstCallee[n]; e < g.firstCallee[n+1] && yield(e); e++ {
		}
	}
}

// callersOf returns the edges to a node.
func (g *graph) callersOf(n uint32) []uint32 { return g.callers[g.firstCaller[n]:g.firstCaller[n+1]] }

// A part is what an edge is summed of: calls from a place, or code of one
// function that is in another.
type part struct {
	from, to uint32
	index    uint32 // of the call, or of what is implied
	implied  bool
}

// newGraph sums up what v has resolved.
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
		add(g.selfOf(v.ofPlace[i]), m.costs.of(i))
	}
	if !m.addresses() { // any code may be in what was entered before it
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

// sign notes which events have costs below zero in rows, of which the last
// numbers are costs.
func (g *graph) sign(rows []int64, width int) {
	for i, n := range rows {
		if e := i%width - (width - g.width); n < 0 && e >= 0 {
			g.signed[e] = true
		}
	}
}

// connect makes edges of their parts.
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
			add(g.edgeCost(uint32(at)), c.costs)
			e.implied = true
			e.count = plus(e.count, c.count)
			continue
		}
		c := g.m.calls.of(int(p.index))
		e.count = plus(e.count, c[0])
		add(g.edgeCost(uint32(at)), c[1:])
	}
	n := len(g.all)
	g.calls = make([]int64, n)
	from, to := make([]uint32, len(g.edges)), make([]uint32, len(g.edges))
	for i, e := range g.edges {
		from[i], to[i] = e.from, e.to
		g.calls[e.to] = plus(g.calls[e.to], e.count)
	}
	g.firstCallee, _ = grouped(from, n)
	g.firstCaller, g.callers = grouped(to, n)
}

// grouped returns the indexes of keys, which are below n, by key: those of key k are at first[k] up
// to first[k+1].
func grouped(keys []uint32, n int) (first, indexes []uint32) {
	first, indexes = make([]uint32, n+1), make([]uint32, len(keys))
	for _, k := range keys {
		first[k+1]++
	}
	for k := range n {
		first[k+1] += first[k]
	}
	next := slices.Clone(first)
	for i, k := range keys {
		indexes[next[k]] = uint32(i)
		next[k]++
	}
	return first, indexes
}

// include sums what each function cost with all that it called. The cost of a
// function that calls itself, by others or not, is in that of its callers many
// times; of it, no more counts than the whole cycle costs.
func (g *graph) include() {
	n := uint32(len(g.all))
	g.inclusive = make([]int64, int(n)*g.width)
	cycle, count := g.cycles()
	members := make([]uint32, count)
	for i := range n {
		members[cycle[i]]++
	}
	whole := g.wholes(cycle, members)
	limit := g.limits()
	called := make([]int64, g.width)
	for i := range n {
		incl := g.inclOf(i)
		clear(called)
		some := false
		for _, e := range g.callersOf(i) {
			if g.edges[e].from != i {
				some = true
				add(called, g.edgeCost(e))
			}
		}
		copy(incl, g.selfOf(i))
		for e := range g.callees(i) {
			if g.edges[e].to != i {
				add(incl, g.edgeCost(e))
			}
		}
		if some && (g.m.head.parts == 1 || members[cycle[i]] > 1) {
			copy(incl, called) // as callgrind_annotate counts
		} else if some {
			for e := range incl { // calls that one part begins and another ends are in neither
				incl[e] = max(incl[e], called[e])
			}
		}
		if members[cycle[i]] > 1 {
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
	// Nor does what a cycle calls of itself.
	for i := range g.edges {
		if e := &g.edges[i]; cycle[e.from] == cycle[e.to] {
			c, from, to := g.edgeCost(uint32(i)), g.inclOf(e.from), g.inclOf(e.to)
			for j := range c {
				if !g.signed[j] {
					c[j] = min(c[j], from[j], to[j])
				}
			}
		}
	}
}

// wholes returns what each cycle costs: its functions, and what these call
// outside.
func (g *graph) wholes(cycle, members []uint32) []int64 {
	whole := make([]int64, len(members)*g.width)
	for i := range uint32(len(g.all)) {
		if members[cycle[i]] < 2 {
			continue
		}
		w := whole[int(cycle[i])*g.width:][:g.width]
		add(w, g.selfOf(i))
		for e := range g.callees(i) {
			if cycle[g.edges[e].to] != cycle[i] {
				add(w, g.edgeCost(e))
			}
		}
	}
	return whole
}

// limits returns what a function may cost at most: as much as all do.
func (g *graph) limits() []int64 {
	all := make([]int64, g.width)
	for i := range g.all {
		add(all, g.selfOf(uint32(i)))
	}
	for e := range all {
		all[e] = max(all[e], g.total[e])
		if g.signed[e] {
			all[e] = math.MaxInt64
		}
	}
	return all
}

// cycles returns of each node which cycle it is in, and how many there are; one
// that is in none is one alone (Tarjan's algorithm).
func (g *graph) cycles() (of []uint32, count uint32) {
	n := uint32(len(g.all))
	of = make([]uint32, n)
	number, low := make([]uint32, n), make([]uint32, n) // 1 and up; 0: not seen
	on := make([]bool, n)
	type visit struct{ node, edge uint32 }
	var stack []uint32
	var path []visit
	seen := uint32(0)
	for root := range n {
		if number[root] != 0 {
			continue
		}
		path = append(path[:0], visit{root, g.firstCallee[root]})
		for len(path) > 0 {
			at := &path[len(path)-1]
			v := at.node
			if number[v] == 0 {
				seen++
				number[v], low[v] = seen, seen
				stack = append(stack, v)
				on[v] = true
			}
			if at.edge < g.firstCallee[v+1] {
				w := g.edges[at.edge].to
				at.edge++
				if number[w] == 0 {
					path = append(path, visit{w, g.firstCallee[w]})
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
