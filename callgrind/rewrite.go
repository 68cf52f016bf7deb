package callgrind

import (
	"cmp"
	"maps"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/stacks"
)

// A rewriter prints the parts of a profile again, with names.
type rewriter struct {
	*printer
	m *model
	s *symbols

	lines    []headerLine // header lines of the current part
	written  [3]map[nameID]int
	last     codePosition
	object   nameID // object of the last ob= line
	file     nameID
	begun    bool
	unmarked bool // a document begins without a line that marks it

	unresolved map[nameID]int
	named      map[nameID]int
	lacking    bool // a part has stripped code and no addresses

	native bool // the current document is a profile of Cachegrind
	placed bool // the document has a positions: line
}

type headerLine struct{ key, value string }

// Tables of names in the output.
const (
	obTable = iota
	flTable
	fnTable
)

// keepHeader keeps at most maxHeader lines of a header, without the lines that the rewriter
// prints itself. A new document restarts the tables of names.
func (w *rewriter) keepHeader(rec *record) {
	switch {
	case rec.Kind == documentRecord:
		w.written, w.object, w.unmarked, w.placed = [3]map[nameID]int{}, 0, true, false
	case rec.Kind != headerRecord || len(w.lines) == maxHeader:
	default:
		switch key := string(rec.Key); key {
		case "positions":
			w.placed = true
		case "events", "summary", "totals":
		case "version", "creator":
			w.unmarked = false
			fallthrough
		default:
			w.lines = append(w.lines, headerLine{key, string(rec.Value)})
		}
	}
}

// part prints the part that has ended, and removes its sums.
func (w *rewriter) part(summary, totals []int64) {
	v := resolve(w.m, w.s)
	for n, count := range v.needed {
		if count > 0 {
			w.unresolved[n] = max(w.unresolved[n], count)
		}
	}
	for n, count := range v.named {
		w.named[n] = max(w.named[n], count)
	}
	w.lacking = w.lacking || v.lacksAddresses()
	addresses := w.m.addresses()
	w.native = !w.begun && !addresses && w.isCachegrinds()
	w.head(addresses, summary)
	w.body(v, addresses)
	if w.native && summary != nil {
		w.b = append(w.appendCosts(append(w.b, "summary:"...), summary), '\n')
	}
	if totals != nil {
		w.b = append(w.b, "\ntotals:"...)
		w.b = append(w.appendCosts(w.b, totals), '\n')
	}
	w.send()
	w.lines = w.lines[:0]
	w.m.forget()
}

func (w *rewriter) head(addresses bool, summary []int64) {
	switch {
	case w.begun:
		w.b = append(w.b, '\n')
	case !w.native:
		w.b = append(w.b, "# callgrind format\n"...)
	}
	w.begun = true
	if w.unmarked && !w.native {
		w.b = append(w.b, "version: 1\n"...)
	}
	w.unmarked = false
	for _, l := range w.lines {
		w.b = append(escape.AppendText(append(append(w.b, l.key...), ": "...), l.value, "\t"), '\n')
	}
	if !w.native {
		w.b = append(w.b, "positions: "...)
		if addresses {
			w.b = append(w.b, "instr "...)
		}
		w.b = append(w.b, "line\n"...)
	}
	w.b = append(w.b, "events:"...)
	for _, e := range w.m.r.Events() {
		w.b = escape.AppendText(append(w.b, ' '), e.Name, "")
	}
	w.b = append(w.b, '\n')
	if summary != nil && !w.native {
		w.b = append(w.b, "summary:"...)
		w.b = append(w.appendCosts(w.b, summary), '\n')
	}
}

// isCachegrinds reports whether the part is in Cachegrind's form, for cg_annotate. Such a part has
// descriptions and a command, followed only by files, functions and lines.
func (w *rewriter) isCachegrinds() bool {
	if w.placed || len(w.m.calls.keys) > 0 || len(w.m.jumps.keys) > 0 || len(w.lines) == 0 {
		return false
	}
	for i, l := range w.lines {
		if last := i == len(w.lines)-1; !last && l.key != "desc" || last && l.key != "cmd" {
			return false
		}
	}
	for _, f := range w.m.functions[1:] {
		if f.object != 0 {
			return false
		}
	}
	return true
}

// body prints the functions with their costs, calls and jumps.
func (w *rewriter) body(v *resolution, addresses bool) {
	m := w.m
	places := v.inOrder()
	at := func(i uint32) *node { return &v.all[v.ofPlace[i]] }
	calls, jumps := byPlace(&m.calls, len(places)), byPlace(&m.jumps, len(places))
	implied := make(map[uint32][]int)
	for i, c := range v.implied {
		implied[c.from] = append(implied[c.from], i)
	}
	w.last = codePosition{}
	function := uint32(0)
	begin := func(n uint32) {
		if n == function && n != 0 {
			return
		}
		function = n
		w.begin(&v.all[n])
		for _, i := range implied[n] {
			w.implied(v, &v.implied[i], addresses)
		}
		delete(implied, n)
	}
	for _, i := range places {
		begin(v.ofPlace[i])
		k := &m.costs.keys[i]
		if v.file[i] != w.file && w.native {
			w.name("fl=", flTable, v.file[i])
			w.name("fn=", fnTable, v.all[v.ofPlace[i]].fn)
			w.file = v.file[i]
		} else if v.file[i] != w.file {
			spec := "fi="
			if v.file[i] == at(i).file {
				spec = "fe="
			}
			w.name(spec, flTable, v.file[i])
			w.file = v.file[i]
		}
		pos := codePosition{k.addr, uint64(v.line[i])}
		if costs := m.costs.countsOf(int(i)); !isZero(costs) || len(calls[i])+len(jumps[i]) == 0 {
			w.cost(pos, costs, addresses)
		}
		for _, c := range calls[i] {
			k := &m.calls.keys[c]
			to := codePosition{k.addr, uint64(k.line)}
			callee := &v.all[v.ofFunction[k.to]]
			switch {
			case !v.needy[k.to]:
			case k.addr != 0:
				if code := v.s.codeAt(location{m.functions[k.to].object, k.addr}); code.line != 0 {
					to.Line = uint64(code.line)
				}
			case to.Line == 0:
				to.Line = uint64(callee.line)
			}
			counts := m.calls.countsOf(int(c))
			w.call(callee, counts[0], to, pos, counts[1:], addresses)
		}
		for _, j := range jumps[i] {
			w.jump(v, i, int(j), pos, addresses)
		}
		w.send()
	}
	for _, n := range slices.Sorted(maps.Keys(implied)) { // functions without own code
		begin(n)
	}
}

// inOrder returns the places in the order of the output: by function, by file, and by address.
// The function's own file comes first.
func (v *resolution) inOrder() []uint32 {
	// By node: its last place in the profile. If several functions share a file,
	// callgrind_annotate shows the last one's object, so functions keep their order.
	order := make([]uint32, len(v.all))
	for i, n := range v.ofPlace {
		order[n] = uint32(i)
	}
	return stacks.Order(len(v.m.costs.keys), func(a, b uint32) int {
		if x, y := v.ofPlace[a], v.ofPlace[b]; x != y {
			return cmp.Compare(order[x], order[y])
		}
		if x, y := v.file[a] == v.all[v.ofPlace[a]].file, v.file[b] == v.all[v.ofPlace[b]].file; x != y {
			if x {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(v.file[a], v.file[b]), cmp.Compare(v.m.costs.keys[a].addr, v.m.costs.keys[b].addr), cmp.Compare(v.line[a], v.line[b]), cmp.Compare(a, b))
	})
}

// byPlace returns, for each place, the indexes of its calls or jumps in s.
func byPlace(s *sums, places int) [][]uint32 {
	all := make([][]uint32, places)
	for i := range s.keys {
		from := s.keys[i].from
		all[from] = append(all[from], uint32(i))
	}
	return all
}

// begin prints the lines that begin a function.
func (w *rewriter) begin(n *node) {
	w.b = append(w.b, '\n')
	if n.object != w.object {
		w.name("ob=", obTable, n.object)
		w.object = n.object
	}
	w.name("fl=", flTable, n.file)
	w.file = n.file
	w.name("fn=", fnTable, n.fn)
}

// name prints a name: in full at first, later by number.
func (w *rewriter) name(spec string, table int, n nameID) {
	w.b = append(w.b, spec...)
	if w.native {
		w.b = append(w.appendName(w.b, table, n), '\n')
		return
	}
	w.b = append(w.b, '(')
	known := w.written[table]
	if known == nil {
		known = make(map[nameID]int)
		w.written[table] = known
	}
	id, ok := known[n]
	if !ok {
		id = len(known) + 1
		known[n] = id
	}
	w.b = append(strconv.AppendInt(w.b, int64(id), 10), ')')
	if !ok {
		w.b = w.appendName(append(w.b, ' '), table, n)
	}
	w.b = append(w.b, '\n')
}

func (w *rewriter) appendName(b []byte, table int, n nameID) []byte {
	text := w.m.r.Text(n)
	switch {
	case n == 0:
		text = unknown
	case table == flTable:
		text = w.s.file(n)
	}
	return escape.AppendText(b, text, "\t")
}

// position prints a position relative to the last one.
func (w *rewriter) position(p codePosition, addresses bool) {
	if w.native {
		w.b = strconv.AppendUint(w.b, p.Line, 10)
		return
	}
	if addresses {
		w.b = appendPosition(w.b, p.Addr, w.last.Addr, 16)
		w.b = append(w.b, ' ')
	}
	w.b = appendPosition(w.b, p.Line, w.last.Line, 10)
}

// appendPosition appends a number, relative to last if they are near.
func appendPosition(b []byte, n, last uint64, base int) []byte {
	const near = 10_000
	switch {
	case n == last && n != 0: // last is 0 before the first position of a part
		return append(b, '*')
	case n > last && n-last < near && last != 0:
		return strconv.AppendUint(append(b, '+'), n-last, 10)
	case n < last && last-n < near && n != 0:
		return strconv.AppendUint(append(b, '-'), last-n, 10)
	case base == 16:
		b = append(b, "0x"...)
	}
	return strconv.AppendUint(b, n, base)
}

// appendCosts appends costs, each after a blank. It omits zeros at the end, unless cg_annotate
// needs them.
func (w *rewriter) appendCosts(b []byte, costs []int64) []byte {
	for !w.native && len(costs) > 1 && costs[len(costs)-1] == 0 {
		costs = costs[:len(costs)-1]
	}
	for _, n := range costs {
		b = strconv.AppendInt(append(b, ' '), n, 10)
	}
	return b
}

func (w *rewriter) cost(p codePosition, costs []int64, addresses bool) {
	w.position(p, addresses)
	w.b = append(w.appendCosts(w.b, costs), '\n')
	w.last = p
}

func (w *rewriter) call(to *node, count int64, target, from codePosition, costs []int64, addresses bool) {
	if to.object != w.object {
		w.name("cob=", obTable, to.object)
	}
	if to.file != w.file {
		w.name("cfi=", flTable, to.file)
	}
	w.name("cfn=", fnTable, to.fn)
	w.b = strconv.AppendInt(append(w.b, "calls="...), count, 10)
	w.b = append(w.b, ' ')
	w.position(target, addresses)
	w.b = append(w.b, '\n')
	w.cost(from, costs, addresses)
}

// implied prints a call that the profile lacks.
func (w *rewriter) implied(v *resolution, c *impliedCall, addresses bool) {
	from, to := &v.all[c.from], &v.all[c.to]
	w.call(to, max(c.count, 1), codePosition{c.addr, uint64(to.line)}, codePosition{from.addr, uint64(from.line)}, c.costs, addresses)
}

func (w *rewriter) jump(v *resolution, place uint32, j int, from codePosition, addresses bool) {
	m := w.m
	k := &m.jumps.keys[j]
	to := v.jumpTarget(k)
	if to.file != w.file {
		w.name("jfi=", flTable, to.file)
	}
	if to.node != v.ofPlace[place] {
		w.name("jfn=", fnTable, v.all[to.node].fn)
	}
	counts := m.jumps.countsOf(j)
	if k.to&1 != 0 {
		w.b = strconv.AppendInt(append(w.b, "jcnd="...), counts[0], 10)
		w.b = strconv.AppendInt(append(w.b, '/'), counts[1], 10)
	} else {
		w.b = strconv.AppendInt(append(w.b, "jump="...), counts[0], 10)
	}
	w.b = append(w.b, ' ')
	w.position(codePosition{k.addr, to.line}, addresses)
	w.b = append(w.b, '\n')
	w.position(from, addresses)
	w.b = append(w.b, '\n')
	w.last = from
}

// A jumpTarget is one end of a jump.
type jumpTarget struct {
	node uint32 // its function
	file nameID
	line uint64 // 0 if unknown
}

func (v *resolution) jumpTarget(k *key) jumpTarget {
	m, fn := v.m, k.to>>1
	to := jumpTarget{node: v.ofPlace[k.from], file: m.functions[fn].file, line: uint64(k.line)}
	if m.functions[fn] != m.functions[m.costs.keys[k.from].from] {
		to.node = v.ofFunction[fn]
	}
	if !v.needy[fn] || k.addr == 0 {
		return to
	}
	c := v.s.codeAt(location{m.functions[fn].object, k.addr})
	if c.fn == 0 {
		return to
	}
	if c.line != 0 {
		to.file, to.line = c.file, uint64(c.line)
	}
	to.node = v.ofFunction[fn]
	if c.fn != v.homes[fn] {
		if at, ok := v.pairs[uint64(fn)<<32|uint64(c.fn)]; ok {
			to.node = uint32(at)
		}
	}
	return to
}
