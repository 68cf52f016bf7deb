package stacks

// A heap holds the options of each node that have costs left: highest cost first, then lowest index
// first.
type heap struct {
	d       *decomposer
	options []uint32 // by node, as in d.out.All: a binary heap
	lengths []uint32 // by node
}

// build makes the heaps from the remaining costs of all options.
func (h *heap) build(d *decomposer) {
	h.d = d
	if h.options == nil {
		h.options, h.lengths = make([]uint32, len(d.out.All)), make([]uint32, d.g.Nodes)
	}
	for node := range uint32(d.g.Nodes) {
		options := h.options[d.out.First[node]:d.out.First[node]]
		for _, o := range d.out.Of(node) {
			if d.left[o] > 0 {
				options = append(options, o)
			}
		}
		h.lengths[node] = uint32(len(options))
		for i := len(options)/2 - 1; i >= 0; i-- {
			h.sink(options, i)
		}
	}
}

func (h *heap) len(node uint32) int { return int(h.lengths[node]) }

func (h *heap) of(node uint32) []uint32 {
	return h.options[h.d.out.First[node]:][:h.lengths[node]]
}

// precedes reports whether a is before b in a heap.
func (h *heap) precedes(a, b uint32) bool {
	x, y := h.d.left[a], h.d.left[b]
	return x > y || x == y && a < b
}

// sink moves an option whose cost became smaller to its place.
func (h *heap) sink(options []uint32, i int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(options); child++ {
			if h.precedes(options[child], options[first]) {
				first = child
			}
		}
		if first == i {
			return
		}
		options[i], options[first] = options[first], options[i]
		i = first
	}
}

func (h *heap) removeFirst(node uint32) {
	options := h.of(node)
	last := len(options) - 1
	options[0] = options[last]
	h.lengths[node]--
	h.sink(options[:last], 0)
}

func (h *heap) clear(node uint32) { h.lengths[node] = 0 }

// large finds the options of a node whose share of amount is at least small. Shares are
// proportional to the options' remaining costs, whose sum is total. large appends the options'
// indexes in the node's heap to found, and stops once found has more than most indexes.
func (h *heap) large(found []uint32, node uint32, amount, total, small int64, most int) []uint32 {
	options := h.of(node)
	is := func(i uint32) bool {
		return i < uint32(len(options)) && fraction(amount, h.d.left[options[i]], total) >= small
	}
	if !is(0) {
		return found
	}
	found = append(found, 0)
	for next := 0; next < len(found) && len(found) <= most; next++ {
		for child := 2*found[next] + 1; child <= 2*found[next]+2; child++ {
			if is(child) {
				found = append(found, child)
			}
		}
	}
	return found
}
