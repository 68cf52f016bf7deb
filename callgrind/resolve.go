package callgrind

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/stacks"
)

// A node is a function of a report: all code of one name and source file in an object.
type node struct {
	object, file, fn nameID
	link             nameID // the linker's name, if it was looked up
	line             uint32
	addr             uint64 // address of its entry; 0 if unknown

	unknown bool // the name is still an address
	merged  bool // known only from code that other functions jumped into
}

type nodeKey struct{ object, file, fn nameID }

// A resolution maps the functions and places of a model to nodes and lines.
type resolution struct {
	m     *model
	s     *symbols
	all   []node
	index map[nodeKey]uint32

	ofFunction []uint32 // by function of the profile: its node
	ofPlace    []uint32 // by place: its node, usually its function's
	file       []nameID // by place
	line       []uint32

	// by function: the profile lacks its name or file, and the object file may have it
	needy   []bool
	needed  map[nameID]int
	named   map[nameID]int      // needy functions that got a name
	callers map[uint32][]uint32 // by function of the profile
	homes   []uint32            // by function: 1 + index of its physical function; 0 if unknown
	pairs   map[uint64]uint64

	implied []impliedCall
	order   []uint32 // places to look up, sorted by object and address
}

// resolve looks up the functions and places of m.
func resolve(m *model, s *symbols) *resolution {
	v := &resolution{m: m, s: s, all: make([]node, 1), index: make(map[nodeKey]uint32), needed: make(map[nameID]int), named: make(map[nameID]int)}
	v.all[0] = node{fn: m.r.text([]byte("(other functions)"))}
	s.style(m)
	v.findNeedy()
	v.places()
	v.unite()
	v.imply()
	if s.o.Output == Profile {
		v.asValgrind()
	}
	for i, n := range v.ofPlace { // a place without a line has at least the function's file
		if v.line[i] == 0 && v.all[n].link != 0 && v.isUnknown(v.file[i]) {
			v.file[i] = v.all[n].file
		}
	}
	return v
}

// nodeFor returns the index of the node with the names of n, added if new.
func (v *resolution) nodeFor(n node) uint32 {
	k := nodeKey{n.object, n.file, n.fn}
	i, ok := v.index[k]
	if !ok {
		i = uint32(len(v.all))
		v.all = append(v.all, n)
		v.index[k] = i
		return i
	}
	have := &v.all[i]
	if have.line == 0 {
		have.line = n.line
	}
	if have.addr == 0 {
		have.addr = n.addr
	}
	if have.link == 0 {
		have.link = n.link
	}
	have.merged = have.merged && n.merged
	return i
}

// isUnknown reports whether the profile has no name for a file.
func (v *resolution) isUnknown(file nameID) bool {
	return file == 0 || v.m.r.Text(file) == unknown
}

// findNeedy sets needy for each function that lacks its name or file and whose object file may have
// it. For each object, needed gets the number of functions without a name.
func (v *resolution) findNeedy() {
	m := v.m
	v.needy = make([]bool, len(m.functions))
	for i, f := range m.functions {
		if i == 0 {
			continue
		}
		_, _, hex := entry(m.r.Text(f.name))
		if !hex && !v.isUnknown(f.file) {
			continue
		}
		file := v.s.objects.file(f.object)
		if hex && file != nil {
			v.needed[f.object]++
		}
		v.needy[i] = file != nil && file.Err == nil && v.s.o.Symbolizer != nil
	}
}

// places looks up the addresses at which needy functions have costs, and makes the nodes.
func (v *resolution) places() {
	m, keys := v.m, v.m.costs.keys
	v.ofFunction = make([]uint32, len(m.functions))
	v.ofPlace = make([]uint32, len(keys))
	v.file, v.line = make([]nameID, len(keys)), make([]uint32, len(keys))
	codes := make([]uint32, len(keys)) // by place: 1 + the index of its physical function
	for i := range keys {
		v.file[i], v.line[i] = nameID(keys[i].to), keys[i].line
		if v.needy[keys[i].from] && keys[i].addr != 0 {
			v.order = append(v.order, uint32(i))
		}
	}
	slices.SortFunc(v.order, func(a, b uint32) int {
		x, y := &keys[a], &keys[b]
		return cmp.Or(cmp.Compare(m.functions[x.from].object, m.functions[y.from].object), cmp.Compare(x.addr, y.addr), cmp.Compare(a, b))
	})
	pairs := make(map[uint64]uint64) // by function and physical function: the first address
	for _, i := range v.order {
		k := &keys[i]
		c := v.s.codeAt(location{m.functions[k.from].object, k.addr})
		if c.file != 0 {
			v.file[i], v.line[i] = c.file, c.line
		}
		codes[i] = c.fn
		if c.fn != 0 {
			pair := uint64(k.from)<<32 | uint64(c.fn)
			if _, ok := pairs[pair]; !ok {
				pairs[pair] = k.addr
			}
		}
	}
	homes := v.findHomes(pairs)
	v.homes, v.pairs = homes, pairs
	v.functions(homes, pairs)
	for i := range keys {
		from := keys[i].from
		v.ofPlace[i] = v.ofFunction[from]
		if c := codes[i]; c != 0 && c != homes[from] {
			pair := uint64(from)<<32 | uint64(c)
			v.ofPlace[i] = uint32(pairs[pair])
		}
	}
}

// findHomes returns, for each function of the profile, 1 + the index of its physical function, or 0
// if unknown.
//
// pairs has an entry for each function and each physical function in whose code the function has
// costs. The value is the first address of these costs. If the physical function is not the
// function's own, findHomes replaces the address by the number of the physical function's node.
func (v *resolution) findHomes(pairs map[uint64]uint64) []uint32 {
	m := v.m
	homes := make([]uint32, len(m.functions))
	for i, f := range m.functions {
		if !v.needy[i] {
			continue
		}
		if addr, _, ok := entry(m.r.Text(f.name)); ok {
			homes[i] = v.s.codeAt(location{f.object, addr}).fn
		}
	}
	targets := make(map[uint32]uint32)
	for i := range m.calls.keys {
		k := &m.calls.keys[i]
		if v.needy[k.to] && homes[k.to] == 0 && k.addr != 0 && targets[k.to] == 0 {
			targets[k.to] = v.s.codeAt(location{m.functions[k.to].object, k.addr}).fn
		}
	}
	count, only := make(map[uint32]int), make(map[uint32]uint32)
	sorted := slices.Sorted(maps.Keys(pairs))
	for _, pair := range sorted {
		from, c := uint32(pair>>32), uint32(pair)
		count[from]++
		only[from] = c
		if homes[from] == 0 && v.s.isCalled(m.r.Text(m.functions[from].name), &v.s.physical[c-1]) {
			homes[from] = c
		}
	}
	for i := range m.functions {
		if homes[i] == 0 && v.needy[i] {
			homes[i] = targets[uint32(i)]
			if _, _, hex := entry(m.r.Text(m.functions[i].name)); homes[i] == 0 && count[uint32(i)] == 1 && !hex {
				homes[i] = only[uint32(i)]
			}
		}
	}
	for _, pair := range sorted {
		if from, c := uint32(pair>>32), uint32(pair); homes[from] != c {
			p := &v.s.physical[c-1]
			addr := pairs[pair]
			line := v.s.codeAt(location{p.object, addr}).caller
			pairs[pair] = uint64(v.nodeFor(node{object: p.object, file: v.orUnknown(p.file), fn: p.shown, link: p.link, line: line, addr: addr, merged: true}))
		}
	}
	return homes
}

// orUnknown returns file, or the ID of "???" if file is 0.
func (v *resolution) orUnknown(file nameID) nameID {
	if file == 0 {
		return v.m.r.text([]byte(unknown))
	}
	return file
}

// functions makes the nodes of the profile's functions.
func (v *resolution) functions(homes []uint32, pairs map[uint64]uint64) {
	m := v.m
	entries := make([]codePosition, len(m.functions)) // by function: position at which it is called
	for i := range m.calls.keys {
		k := &m.calls.keys[i]
		e := &entries[k.to]
		if e.Addr == 0 {
			e.Addr = k.addr
		}
		if k.line != 0 && (e.Line == 0 || uint64(k.line) < e.Line) {
			e.Line = uint64(k.line)
		}
	}
	for i := range m.costs.keys {
		k := &m.costs.keys[i]
		if e := &entries[k.from]; e.Line == 0 && k.line != 0 && nameID(k.to) == m.functions[k.from].file {
			e.Line = uint64(k.line) // the line of any place will do
		}
	}
	for i, f := range m.functions {
		if i == 0 {
			continue
		}
		n := node{object: f.object, file: f.file, fn: f.name, line: uint32(entries[i].Line), addr: entries[i].Addr}
		name := m.r.Text(f.name)
		addr, rest, hex := entry(name)
		if hex {
			n.addr = addr
			n.unknown = homes[i] == 0
		}
		if home := homes[i]; home != 0 {
			p := &v.s.physical[home-1]
			n.link = p.link
			if hex {
				n.fn = m.r.text([]byte(m.r.Text(p.shown) + v.levels(uint32(i), rest)))
				v.needed[f.object]--
				v.named[f.object]++
			}
			if v.isUnknown(f.file) {
				n.file = v.orUnknown(p.file)
			}
			if n.addr == 0 {
				n.addr = pairs[uint64(i)<<32|uint64(home)]
			}
			if line := v.s.codeAt(location{f.object, n.addr}).caller; line != 0 {
				n.line = line
			}
		}
		if base, rest, ok := strings.Cut(name, "'"); ok && n.fn == f.name && strings.Contains(rest, "0x") {
			n.fn = m.r.text([]byte(base + v.levels(uint32(i), "'"+rest)))
		}
		v.ofFunction[i] = v.nodeFor(n)
	}
}

// asValgrind sets the source file and line of each function to those of its first instruction, as
// Valgrind does. The instruction may be in an inlined function.
func (v *resolution) asValgrind() {
	for i := range v.all {
		if n := &v.all[i]; n.link != 0 && n.addr != 0 {
			if c := v.s.codeAt(location{n.object, n.addr}); c.file != 0 {
				n.file, n.line = c.file, c.line
			}
		}
	}
}

// levels returns rest, the suffix of a function's name, with the addresses of callers replaced by
// names. The suffix has the level of recursion and the callers.
func (v *resolution) levels(fn uint32, rest string) string {
	if strings.HasPrefix(rest, " [") { // drop the section, since the function now has a name
		if i := strings.IndexByte(rest, '\''); i >= 0 {
			return v.levels(fn, rest[i:])
		}
		return ""
	}
	if len(rest) > maxCompared || !strings.Contains(rest, "'0x") {
		return rest
	}
	v.findCallers()
	parts := strings.Split(rest, "'")
	at := []uint32{fn}
	for i := 1; i < len(parts) && len(at) > 0; i++ {
		if _, err := strconv.ParseUint(parts[i], 10, 64); err == nil {
			continue // a level of recursion
		}
		var next []uint32 // the callers with the name parts[i]
		for j := 0; j < len(at); j++ {
			for _, c := range v.callers[at[j]] {
				switch v.base(c) {
				case parts[i]:
					if len(next) < maxCallers && !slices.Contains(next, c) {
						next = append(next, c)
					}
				case v.base(at[j]): // a recursive call: follow it to the first caller
					if len(at) < maxCallers && !slices.Contains(at, c) {
						at = append(at, c)
					}
				}
			}
		}
		if at = next; len(at) == 0 {
			break
		}
		if addr, _, ok := entry(parts[i]); ok {
			if c := v.s.codeAt(location{v.m.functions[at[0]].object, addr}); c.fn != 0 {
				parts[i] = v.m.r.Text(v.s.physical[c.fn-1].shown)
			}
		}
	}
	return strings.Join(parts, "'")
}

// base returns the name of a function without its level of recursion and its callers.
func (v *resolution) base(fn uint32) string {
	name, _, _ := strings.Cut(v.m.r.Text(v.m.functions[fn].name), "'")
	return name
}

// maxCallers bounds the callers kept for a function. It also bounds the functions of one name
// in which levels searches for a caller.
const maxCallers = 16

// findCallers finds at most maxCallers callers of each function.
func (v *resolution) findCallers() {
	if v.callers != nil {
		return
	}
	m := v.m
	v.callers = make(map[uint32][]uint32)
	for i := range m.calls.keys {
		k := &m.calls.keys[i]
		from := m.costs.keys[k.from].from
		if all := v.callers[k.to]; len(all) < maxCallers && !slices.Contains(all, from) {
			v.callers[k.to] = append(all, from)
		}
	}
}

// An impliedCall is a call that the profile lacks: one function jumped into the code of another,
// and the profile counts the costs of that code for the first function. If Callgrind has the names
// of both functions, it writes such a jump as a call.
type impliedCall struct {
	from, to uint32
	count    int64
	costs    []int64 // costs of the code and its calls
	addr     uint64  // address of the first byte of the code
}

// imply collects the implied calls, and sums the costs of each: see impliedCall.
func (v *resolution) imply() {
	m := v.m
	index := make(map[[2]uint32]int)
	of := func(from, to uint32) *impliedCall {
		i, ok := index[[2]uint32{from, to}]
		if !ok {
			i = len(v.implied)
			index[[2]uint32{from, to}] = i
			v.implied = append(v.implied, impliedCall{from: from, to: to, costs: make([]int64, m.costs.width)})
		}
		return &v.implied[i]
	}
	counts := len(m.r.Events()) > 0 && m.r.Events()[0].Name == "Ir"
	for _, i := range v.order {
		k := &m.costs.keys[i]
		at, fn := v.ofPlace[i], v.ofFunction[k.from]
		if at == fn {
			continue
		}
		c := of(fn, at)
		stacks.AddTo(c.costs, m.costs.countsOf(int(i)))
		if c.addr == 0 || c.addr == k.addr {
			c.addr = k.addr
			if counts { // the first instruction's count is the number of calls
				c.count = stacks.Plus(c.count, m.costs.countsOf(int(i))[0])
			}
		}
	}
	for i := range m.calls.keys {
		k := &m.calls.keys[i]
		if at, fn := v.ofPlace[k.from], v.ofFunction[m.costs.keys[k.from].from]; at != fn {
			stacks.AddTo(of(fn, at).costs, m.calls.countsOf(i)[1:])
		}
	}
}

// unite merges called functions without costs into functions of the same name with costs. Some
// producers omit the object or the file of a called function.
func (v *resolution) unite() {
	costs := make([]bool, len(v.all))
	for _, at := range v.ofPlace {
		costs[at] = true
	}
	for _, at := range v.ofFunction { // a function with code inside other functions has costs there
		costs[at] = costs[at] || v.all[at].merged
	}
	type place struct{ where, fn nameID }
	// the only function with costs and this name; 0 if there are several
	inObject, inFile := make(map[place]uint32), make(map[place]uint32)
	note := func(m map[place]uint32, p place, n uint32) {
		if _, ok := m[p]; ok {
			n = 0
		}
		m[p] = n
	}
	for n, is := range costs {
		if is && n > 0 {
			note(inObject, place{v.all[n].object, v.all[n].fn}, uint32(n))
			note(inFile, place{v.all[n].file, v.all[n].fn}, uint32(n))
		}
	}
	for i, at := range v.ofFunction {
		if i == 0 || costs[at] {
			continue
		}
		n := v.all[at]
		if to := inObject[place{n.object, n.fn}]; to != 0 {
			v.ofFunction[i] = to
		} else if to := inFile[place{n.file, n.fn}]; to != 0 {
			v.ofFunction[i] = to
		}
	}
}
