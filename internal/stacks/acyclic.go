package stacks

import (
	"cmp"
	"slices"
)

// maxCancelling bounds the arcs followed to cancel cycles. Profiles of compilers need less than a
// thousandth of this bound.
const maxCancelling = 1 << 26

// cancel removes the costs that circulate in cycles. It subtracts the smallest cost in a cycle from
// each arc of the cycle, until no cycle is left. It returns the sum of these smallest costs, and
// sets postorder.
//
// The search is depth-first. If an arc of the cycle loses all of its cost, the search returns to
// the function in which the first such arc begins. After maxCancelling steps, only the arc that
// closes a cycle loses its cost.
func (d *decomposer) cancel() (removed int64) {
	const (
		fresh = iota
		active
		done
	)
	n := d.g.Nodes
	state := make([]uint8, n)
	next := make([]uint32, n) // index in d.out.All of the next option to try
	copy(next, d.out.First)
	depth := make([]int, n) // by active node: index in trail of the arc from the node
	var trail []uint32      // arcs to the current node
	d.postorder = d.postorder[:0]
	steps := 0
	for root := range uint32(n) {
		if state[root] != fresh {
			continue
		}
		node := root
		state[node], depth[node] = active, 0
		for {
			if next[node] == d.out.First[node+1] {
				state[node] = done
				d.postorder = append(d.postorder, node)
				if len(trail) == 0 {
					break
				}
				node = d.g.Arcs[trail[len(trail)-1]].From
				trail = trail[:len(trail)-1]
				next[node]++
				continue
			}
			o := d.out.All[next[node]]
			if int(o) >= len(d.g.Arcs) || d.left[o] == 0 || state[d.g.Arcs[o].To] == done {
				next[node]++
				continue
			}
			to := d.g.Arcs[o].To
			if state[to] == fresh {
				steps++
				trail = append(trail, o)
				node = to
				state[node], depth[node] = active, len(trail)
				continue
			}
			cycle := append(trail, o)[depth[to]:]
			if steps += len(cycle); steps > maxCancelling {
				removed = Plus(removed, d.left[o])
				d.left[o] = 0
				continue
			}
			least := d.left[o]
			for _, a := range cycle {
				least = min(least, d.left[a])
			}
			removed = Plus(removed, least)
			empty := len(cycle)
			for i, a := range slices.Backward(cycle) {
				if d.left[a] -= least; d.left[a] == 0 {
					empty = i
				}
			}
			// the search must visit the nodes after the first arc without cost again, since other
			// arcs may lead to them
			for _, a := range trail[depth[to]+empty:] {
				state[d.g.Arcs[a].To] = fresh
			}
			if tail := depth[to] + empty; tail < len(trail) {
				node = d.g.Arcs[trail[tail]].From
				trail = trail[:tail]
			}
		}
	}
	return removed
}

// trim removes cost from the arcs to a node, largest first.
func (d *decomposer) trim(node uint32, excess int64) {
	arcs := slices.Clone(d.in.Of(node))
	slices.SortFunc(arcs, func(a, b uint32) int { return cmp.Or(cmp.Compare(d.left[b], d.left[a]), cmp.Compare(a, b)) })
	for _, a := range arcs {
		n := min(excess, d.left[a])
		d.left[a] -= n
		if excess -= n; excess == 0 {
			return
		}
	}
}
