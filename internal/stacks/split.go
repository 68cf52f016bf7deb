package stacks

import (
	"math/bits"
	"slices"
)

// smallShare limits how finely costs are divided. A part below the total cost divided by smallShare
// is not split off in proportion: its cost goes to the option with the largest remaining cost. This
// keeps stacks few.
const smallShare = 1000

// A piece is cost that enters a node and is not yet divided among the node's options.
type piece struct {
	amount int64
	node   uint32
	arc    uint32 // the arc to the node; not set for a root
	depth  int    // length of the path before the arc's location
	root   bool   // the flow begins at the node
}

// split divides the flow into stacks.
//
// A piece of flow at a node is divided among the remaining costs of the node's options. Each
// option gets at most one part, so each stack is found once. A part that takes the whole
// remaining cost of an option uses the option up. spare, the number of divisions left, keeps
// the number of stacks within the number of options. Each part of a piece after the first takes
// one division. Each option used up, except a node's last, gives one back.
func (d *decomposer) split() {
	d.heap.build(d)
	var pending []piece
	whole, spare := int64(0), 0
	for _, node := range d.postorder {
		if d.total[node] > 0 {
			spare++
		}
		if n := d.source[node]; n > 0 {
			spare--
			whole += n
			pending = append(pending, piece{amount: n, node: node, root: true})
		}
	}
	small := max(1, whole/smallShare)
	var parts []part
	for len(pending) > 0 && d.frames > 0 {
		p := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if p.root {
			d.path = d.path[:0]
			if d.g.Above != nil {
				d.path = append(d.path, d.g.Above(p.node)...)
				slices.Reverse(d.path)
			}
		} else {
			d.path = append(d.path[:p.depth], d.g.Arcs[p.arc].Location)
		}
		ways := d.heap.len(p.node)
		parts = d.divide(p.node, p.amount, small, spare, parts[:0])
		spare -= (len(parts) - 1) - (max(1, ways) - max(1, d.heap.len(p.node)))
		for _, q := range slices.Backward(parts) {
			if arcs := uint32(len(d.g.Arcs)); q.option < arcs {
				pending = append(pending, piece{amount: q.amount, node: d.g.Arcs[q.option].To, arc: q.option, depth: len(d.path)})
			} else {
				d.emit(q.option-arcs, q.amount)
			}
		}
	}
}

// emit adds the current path with a sink as a stack. If the limit of locations leaves no room,
// the sink keeps the cost, and no further stack is added.
func (d *decomposer) emit(sink uint32, amount int64) {
	if d.frames -= d.weight(sink); d.frames < 0 {
		d.frames = 0
		d.left[uint32(len(d.g.Arcs))+sink] += amount
		return
	}
	d.reversed = append(append(d.reversed[:0], d.path...), d.g.Sinks[sink].Location)
	slices.Reverse(d.reversed)
	d.addSample(d.reversed, amount)
}

// weight returns the weight of the stack from the current path to a sink: the sum of its locations'
// weights in Graph.Weights.
func (d *decomposer) weight(sink uint32) int {
	weights := d.g.Weights
	if weights == nil {
		return len(d.path) + 1
	}
	of := func(location uint32) int {
		if int(location) <= len(weights) {
			return weights[location-1]
		}
		return 1
	}
	sum := of(d.g.Sinks[sink].Location)
	for _, l := range d.path {
		sum += of(l)
	}
	return sum
}

// A part is an option's share of a piece.
type part struct {
	option uint32
	amount int64
}

// divide divides amount among the options of a node, and subtracts the parts from the remaining
// costs. Options whose proportional share is at least small get that share, unless there are more
// than spare such options. The rest goes to the options with the largest remaining costs.
func (d *decomposer) divide(node uint32, amount, small int64, spare int, parts []part) []part {
	total := d.total[node]
	d.total[node] -= amount
	options := d.heap.of(node)
	if amount == total {
		for _, o := range options {
			parts = append(parts, part{o, d.left[o]})
			d.left[o] = 0
		}
		d.heap.clear(node)
		return parts
	}
	if amount >= small && spare > 1 {
		d.found = d.heap.large(d.found[:0], node, amount, total, small, spare)
		if n := len(d.found); n > 1 && n <= spare {
			amount -= d.inProportion(options, amount, total, &parts)
		}
	}
	for i, p := range parts {
		d.partOf[p.option] = uint32(i + 1)
	}
	proportional := parts
	for amount > 0 {
		options = d.heap.of(node)
		o := options[0]
		n := min(amount, d.left[o])
		d.left[o] -= n
		amount -= n
		if d.left[o] == 0 {
			d.heap.removeFirst(node)
		} else {
			d.heap.sink(options, 0)
		}
		if i := d.partOf[o]; i > 0 {
			parts[i-1].amount += n
		} else {
			parts = append(parts, part{o, n})
		}
	}
	for _, p := range proportional {
		d.partOf[p.option] = 0
	}
	return parts
}

// inProportion divides an amount among the options at d.found in a heap. It returns the sum of
// their shares.
func (d *decomposer) inProportion(options []uint32, amount, total int64, parts *[]part) (sum int64) {
	for _, i := range d.found {
		o := options[i]
		share := fraction(amount, d.left[o], total)
		*parts = append(*parts, part{o, share})
		d.left[o] -= share // less than all of it, since amount is less than total
		sum += share
	}
	slices.Sort(d.found)
	for _, i := range slices.Backward(d.found) { // the heap below is in order
		d.heap.sink(options, int(i))
	}
	return sum
}

// fraction returns a*b/c, for b <= c.
func fraction(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	q, _ := bits.Div64(hi, lo, uint64(c))
	return int64(q)
}
