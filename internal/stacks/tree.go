package stacks

import (
	"cmp"
	"slices"
)

// A tree adds up the values of stacks with equal frames. Stacks share their outer frames, which
// saves memory.
type tree struct {
	nodes []treeNode // node 0 is the empty stack
}

type treeNode struct {
	up    uint32 // index of the stack without its innermost frame
	frame uint32
	pair  pair
}

// A pair holds the value of a stack in each of two profiles. With one profile, the second value is
// 0.
type pair [2]int64

// A treeKey identifies a stack by its innermost frame and the index of the stack without that
// frame.
type treeKey struct{ up, frame uint32 }

// newTree adds up the stacks of profiles by one value. framesOf returns the frames at each
// location of a profile, outermost first. empty is the frame of an empty stack.
func newTree(profiles []*Profile, value int, framesOf func(*Profile) [][]uint32, empty uint32) *tree {
	t := &tree{nodes: make([]treeNode, 1)}
	below := make(map[treeKey]uint32)
	for side, p := range profiles {
		t.add(p, side, value, framesOf(p), empty, below)
	}
	return t
}

func (t *tree) add(p *Profile, side, value int, frames [][]uint32, empty uint32, below map[treeKey]uint32) {
	at := uint32(0)
	call := func(frame uint32) {
		k := treeKey{at, frame}
		next, ok := below[k]
		if !ok {
			next = uint32(len(t.nodes))
			t.nodes = append(t.nodes, treeNode{up: at, frame: frame})
			below[k] = next
		}
		at = next
	}
	for i := range p.Samples {
		s := &p.Samples[i]
		if s.Values[value] == 0 {
			continue
		}
		at = 0
		for _, l := range slices.Backward(s.Stack) {
			for _, f := range frames[l-1] {
				call(f)
			}
		}
		if at == 0 {
			call(empty)
		}
		n := &t.nodes[at].pair[side]
		*n = Plus(*n, s.Values[value])
	}
}

// walk calls visit for each stack that has a value other than 0 in any profile. visit gets the
// outermost frame first. Stacks are sorted by their frames, and rank holds the position of each
// frame.
func (t *tree) walk(rank []uint32, visit func(stack []uint32, values pair)) {
	order := make([]uint32, len(t.nodes)-1) // nodes by parent
	first := make([]uint32, len(t.nodes)+1) // by node: index of its first child in order
	for i := range order {
		order[i] = uint32(i + 1)
		first[t.nodes[i+1].up+1]++
	}
	slices.SortFunc(order, func(a, b uint32) int {
		x, y := &t.nodes[a], &t.nodes[b]
		return cmp.Or(cmp.Compare(x.up, y.up), cmp.Compare(rank[x.frame], rank[y.frame]))
	})
	for i := range t.nodes {
		first[i+1] += first[i]
	}
	type step struct{ node, next uint32 } // next is the index in order of the next child
	var stack []uint32
	path := []step{{0, first[0]}}
	for len(path) > 0 {
		at := &path[len(path)-1]
		if at.next == first[at.node+1] {
			path = path[:len(path)-1]
			stack = stack[:max(0, len(path)-1)]
			continue
		}
		n := order[at.next]
		at.next++
		path = append(path, step{n, first[n]})
		stack = append(stack, t.nodes[n].frame)
		if v := t.nodes[n].pair; v != (pair{}) {
			visit(stack, v)
		}
	}
}
