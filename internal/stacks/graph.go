package stacks

import "math"

// A Graph is a call graph. A sink is a place in a function, with the cost of its own code. An arc
// is a call, whose cost includes all calls made during the call. Between equal costs, the order in
// Sinks and Arcs decides.
type Graph struct {
	Nodes int // functions, numbered from 0
	Sinks []Sink
	Arcs  []Arc

	// Weights has the weights of locations, in frames, at the index of the location's number
	// minus 1. Other locations have the weight 1.
	Weights []int

	// Above returns the locations above a node: callers whose calls are not in the graph, innermost
	// first. They come first in stacks that begin at the node. Above may be nil.
	Above func(node uint32) []uint32
}

// A Sink is a place in a function with the cost of its own code.
type Sink struct{ Node, Location uint32 }

// An Arc sums the calls from a place in one function to another function.
type Arc struct{ From, To, Location uint32 }

// A Loss has the costs of a call graph that its stacks lack, by value.
type Loss struct {
	Recursion []int64 // costs of calls back to an active function
	Unplaced  []int64 // costs of places without a stack
}

// Decompose adds stacks to p that have the costs of g: a decomposition of its flow into paths.
// For each value, costs writes the costs of g.Sinks and g.Arcs.
//
// Costs add up if the calls to each function cost as much as its sinks and its own calls. In
// the sum of all stacks, each sink then has exactly its own cost, and each arc outside of
// cycles has the cost of its calls. A chain of three or more functions is one of several
// possible chains: the graph does not show which calls belong to which caller. Costs that
// circulate in a cycle are removed first. If the calls to a function cost too much, the largest
// calls lose the difference. If they cost too little, stacks begin at the function. Costs below
// 0 are decomposed separately.
//
// Each value adds at most len(g.Arcs) + len(g.Sinks) stacks. All stacks together have at most
// maxFrames locations, counted by Graph.Weights. Costs beyond this limit get stacks of one
// location each, which do not count. If the sum of a value's costs exceeds int64, all of them
// get such stacks.
func Decompose(p *Profile, g *Graph, costs func(value int, sinks, arcs []int64), maxFrames int) Loss {
	d := newDecomposer(p, g, maxFrames)
	loss := Loss{Recursion: make([]int64, len(p.Values)), Unplaced: make([]int64, len(p.Values))}
	given := make([]int64, len(d.left))
	for value := range p.Values {
		clear(given)
		costs(value, given[len(g.Arcs):], given[:len(g.Arcs):len(g.Arcs)])
		for _, sign := range []int64{1, -1} {
			if !d.take(given, sign) {
				continue
			}
			d.value, d.sign = value, sign
			if d.addsUp() {
				recursion := d.cancel()
				loss.Recursion[value] = Plus(loss.Recursion[value], sign*recursion)
				d.balance()
				d.split()
			}
			loss.Unplaced[value] = Plus(loss.Unplaced[value], d.unplaced())
		}
	}
	return loss
}

// A decomposer divides the costs of a graph among stacks. An option is a way out of a node: arc i
// is option i, and sink i is option len(g.Arcs)+i.
type decomposer struct {
	p *Profile
	g *Graph

	out, in       Groups  // by node: its options; the arcs to it
	left          []int64 // by option: cost that is not in a stack yet
	postorder     []uint32
	source, total []int64 // by node: the cost that begins there; the cost of all its options
	heap          heap

	value  int
	sign   int64
	frames int      // locations that may still be added
	path   []uint32 // locations of the current stack, outermost first

	// by option: 1 + index of its part of the current piece; 0 if it has no part
	partOf          []uint32
	reversed, found []uint32 // reused
}

func newDecomposer(p *Profile, g *Graph, maxFrames int) *decomposer {
	arcs := len(g.Arcs)
	d := &decomposer{p: p, g: g, frames: maxFrames}
	d.out = GroupBy(g.Nodes, arcs+len(g.Sinks), func(i int) uint32 {
		if i < arcs {
			return g.Arcs[i].From
		}
		return g.Sinks[i-arcs].Node
	})
	d.in = GroupBy(g.Nodes, arcs, func(i int) uint32 { return g.Arcs[i].To })
	d.left = make([]int64, arcs+len(g.Sinks))
	d.partOf = make([]uint32, arcs+len(g.Sinks))
	d.source, d.total = make([]int64, g.Nodes), make([]int64, g.Nodes)
	return d
}

// take sets the remaining costs to the given costs of one sign, as absolute values. Costs of the
// other sign become 0. take reports whether any cost remains.
func (d *decomposer) take(given []int64, sign int64) bool {
	some := false
	for i, n := range given {
		d.left[i] = max(0, max(n, -math.MaxInt64)*sign)
		some = some || d.left[i] > 0
	}
	return some
}

// addsUp reports whether the sum of all costs is within int64.
func (d *decomposer) addsUp() bool {
	sum := int64(0)
	for _, n := range d.left {
		if sum += n; sum < 0 {
			return false
		}
	}
	return true
}

// balance makes the costs of each node add up. It trims the arcs to a node if they cost more than
// the node's options. If they cost less, the rest becomes the cost that begins at the node.
func (d *decomposer) balance() {
	for _, node := range d.postorder { // callees first, since the costs out of node must be final
		out, in := int64(0), int64(0)
		for _, o := range d.out.Of(node) {
			out += d.left[o]
		}
		for _, a := range d.in.Of(node) {
			in += d.left[a]
		}
		if in > out {
			d.trim(node, in-out)
			in = out
		}
		d.total[node], d.source[node] = out, out-in
	}
}

// unplaced adds a stack of one location for each sink with a cost left. It returns the sum of
// these costs.
func (d *decomposer) unplaced() (sum int64) {
	for i, n := range d.left[len(d.g.Arcs):] {
		if n > 0 {
			sum = Plus(sum, d.sign*n)
			d.addSample([]uint32{d.g.Sinks[i].Location}, n)
		}
	}
	return sum
}

// addSample adds a stack with a cost of the current value.
func (d *decomposer) addSample(stack []uint32, cost int64) {
	d.p.addStack(stack, d.value, d.sign*cost)
}
