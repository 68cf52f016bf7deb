package dwarf

import (
	"cmp"
	"slices"
	"sort"
)

// A unitRange assigns [lo,hi) to the unit at an offset of .debug_info.
type unitRange struct {
	lo, hi uint64
	unit   uint64
}

const noUnit = ^uint64(0)

// A rangeSet finds the unit of an address. Its ranges are sorted and do not overlap.
type rangeSet []unitRange

func (r rangeSet) find(addr uint64) uint64 {
	i := sort.Search(len(r), func(i int) bool { return r[i].lo > addr })
	if i == 0 || addr >= r[i-1].hi {
		return noUnit
	}
	return r[i-1].unit
}

// nearBytes is the number of bytes before an address that settle considers. settle needs a byte
// among them that at most one unit claims. Such bytes are at most a few functions apart.
const nearBytes = 64 << 10

// near reports whether r may matter for settle: it starts at addr or below, and ends above
// addr-within.
func (r *unitRange) near(addr, within uint64) bool {
	return r.lo <= addr && (addr < within || r.hi > addr-within)
}

// settleNear is settle for the ranges near addr, which it reorders. It first tries a sixteenth of
// nearBytes, which usually suffices.
func settleNear(near []unitRange, addr uint64) (unit uint64, sure bool) {
	const less = nearBytes / 16
	n := 0
	for i, r := range near {
		if r.near(addr, less) {
			near[n], near[i] = r, near[n]
			n++
		}
	}
	if unit, sure = settle(near[:n], addr, less); sure {
		return unit, sure
	}
	return settle(near, addr, nearBytes)
}

// settle returns the unit that sweep would assign to addr. near must hold all ranges that start at
// addr or below and end above addr-within. sure is false if these ranges do not determine the unit.
// They do if at most one of them covers some byte from addr-within to addr: ranges before that byte
// cannot matter.
func settle(near []unitRange, addr, within uint64) (unit uint64, sure bool) {
	type edge struct {
		addr  uint64
		delta int
	}
	edges := make([]edge, 0, 2*len(near)+1)
	from := addr - min(addr, within)
	edges = append(edges, edge{0, 0})
	for _, r := range near {
		edges = append(edges, edge{r.lo, +1}, edge{r.hi, -1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Compare(a.addr, b.addr) })
	live := 0
	for i, e := range edges {
		live += e.delta
		end := addr
		if i+1 < len(edges) {
			end = min(addr, edges[i+1].addr)
		}
		if e.addr < end && end > from && live <= 1 {
			sure = true
			break
		}
	}
	return sweep(near).find(addr), sure
}

// sweep makes ranges disjoint as LLVM does. It goes through all starts and ends in order. The
// stretch between two of them belongs to the unit of the preceding stretch, if that unit also
// claims it. Otherwise it belongs to the first unit in .debug_info that claims it.
func sweep(all []unitRange) rangeSet {
	out := make(rangeSet, 0, len(all))
	slices.SortFunc(all, func(a, b unitRange) int { return cmp.Compare(a.lo, b.lo) })
	for i := 0; i < len(all); {
		first, hi := i, all[i].hi
		for i++; i < len(all) && all[i].lo < hi; i++ {
			hi = max(hi, all[i].hi)
		}
		if i > first+1 {
			out = sweepCluster(out, all[first:i])
			continue
		}
		if n := len(out); n > 0 && out[n-1].hi == all[first].lo && out[n-1].unit == all[first].unit {
			out[n-1].hi = hi
			continue
		}
		out = append(out, all[first])
	}
	return slices.Clip(out)
}

// sweepCluster appends the stretches of cluster, a group of overlapping ranges.
func sweepCluster(out rangeSet, cluster []unitRange) rangeSet {
	type end struct {
		addr, unit uint64
		start      bool
	}
	ends := make([]end, 0, 2*len(cluster))
	for _, r := range cluster {
		ends = append(ends, end{r.lo, r.unit, true}, end{r.hi, r.unit, false})
	}
	slices.SortFunc(ends, func(a, b end) int { return cmp.Compare(a.addr, b.addr) })
	// number of a unit's ranges that cover the current stretch
	claims := make(map[uint64]int, len(cluster))
	// the units that claim the stretch, by offset; a unit whose claims have ended is removed only
	// when it is the first
	var first minHeap
	live := 0
	prev := ends[0].addr
	for _, e := range ends {
		if prev < e.addr && live > 0 {
			for claims[first[0]] == 0 {
				first.pop()
			}
			if n := len(out); n > 0 && out[n-1].hi == prev && claims[out[n-1].unit] > 0 {
				out[n-1].hi = e.addr
			} else {
				out = append(out, unitRange{prev, e.addr, first[0]})
			}
		}
		if e.start {
			live++
			if claims[e.unit]++; claims[e.unit] == 1 {
				first.push(e.unit)
			}
		} else {
			live--
			claims[e.unit]--
		}
		prev = e.addr
	}
	return out
}

// A minHeap holds its smallest element first.
type minHeap []uint64

func (h *minHeap) push(v uint64) {
	s := append(*h, v)
	for i := len(s) - 1; i > 0; {
		parent := (i - 1) / 2
		if s[parent] <= s[i] {
			break
		}
		s[parent], s[i] = s[i], s[parent]
		i = parent
	}
	*h = s
}

func (h *minHeap) pop() {
	s := *h
	n := len(s) - 1
	s[0] = s[n]
	s = s[:n]
	for i := 0; ; {
		least := i
		for _, kid := range [2]int{2*i + 1, 2*i + 2} {
			if kid < n && s[kid] < s[least] {
				least = kid
			}
		}
		if least == i {
			break
		}
		s[i], s[least] = s[least], s[i]
		i = least
	}
	*h = s
}
