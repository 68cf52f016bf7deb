package callgrind

import (
	"cmp"
	"slices"

	"github.com/symfilter/symfilter/internal/stacks"
)

// eachPlace calls visit for each place, sorted by object and address, with the indexes of its keys.
// Keys of one place have the same function, address, source file and line.
func (g *graph) eachPlace(visit func(same []uint32)) {
	keys := g.m.costs.keys
	object := func(i uint32) nameID { return g.m.functions[keys[i].from].object }
	compare := func(a, b uint32) int {
		c := cmp.Or(cmp.Compare(object(a), object(b)), cmp.Compare(keys[a].addr, keys[b].addr), cmp.Compare(g.ofPlace[a], g.ofPlace[b]))
		if c == 0 {
			c = cmp.Or(cmp.Compare(g.file[a], g.file[b]), cmp.Compare(g.line[a], g.line[b]))
		}
		return c
	}
	order := stacks.Order(len(keys), func(a, b uint32) int { return cmp.Or(compare(a, b), cmp.Compare(a, b)) })
	for len(order) > 0 {
		n := 1
		for n < len(order) && compare(order[0], order[n]) == 0 {
			n++
		}
		visit(order[:n])
		order = order[n:]
	}
}

// A fileCost is the cost of a function in one source file: its own file, or a file of inlined code.
type fileCost struct {
	name  nameID
	costs []int64
}

// filesOf returns the cost of a function in each source file, in the profile's order of files:
// see maxFiles.
func (g *graph) filesOf(n uint32) (all []fileCost) {
	if g.placesOf.All == nil {
		g.placesOf = stacks.GroupBy(len(g.all), len(g.ofPlace), func(i int) uint32 { return g.ofPlace[i] })
	}
	for _, i := range g.placesOf.Of(n) {
		file := g.file[i]
		at := slices.IndexFunc(all, func(f fileCost) bool { return f.name == file })
		if at < 0 {
			if len(all) == maxFiles {
				all[maxFiles-1].name = 0
				at = maxFiles - 1
			} else {
				at = len(all)
				all = append(all, fileCost{file, make([]int64, g.width)})
			}
		}
		stacks.AddTo(all[at].costs, g.m.costs.countsOf(int(i)))
	}
	return all
}

// maxFiles bounds the result of filesOf. The last entry may be the sum of the remaining files; it
// has no name.
const maxFiles = 256
