package stacks

import "slices"

// Order returns the numbers from 0 to n-1, sorted by compare.
func Order(n int, compare func(a, b uint32) int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	slices.SortFunc(order, compare)
	return order
}

// ranks returns the index of each number in Order.
func ranks(n int, compare func(a, b uint32) int) []uint32 {
	rank := make([]uint32, n)
	for i, at := range Order(n, compare) {
		rank[at] = uint32(i)
	}
	return rank
}

// Groups hold the numbers that belong to each node: those of node n are All[First[n]:First[n+1]].
type Groups struct{ First, All []uint32 }

// Of returns the numbers of a node, in order.
func (s *Groups) Of(node uint32) []uint32 { return s.All[s.First[node]:s.First[node+1]] }

// GroupBy groups the numbers from 0 to count-1 by node. The function node returns the node of a
// number.
func GroupBy(nodes, count int, node func(i int) uint32) Groups {
	s := Groups{make([]uint32, nodes+1), make([]uint32, count)}
	for i := range count {
		s.First[node(i)+1]++
	}
	for n := range nodes {
		s.First[n+1] += s.First[n]
	}
	next := slices.Clone(s.First)
	for i := range count {
		n := node(i)
		s.All[next[n]] = uint32(i)
		next[n]++
	}
	return s
}
