package callgrind

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
	"github.com/symfilter/symfilter/symbolize"
)

// A stacker makes the call graph of a resolved profile.
type stacker struct {
	*resolution
	p        *stacks.Profile
	detail   detail
	measures []measure
	scale    []int64 // by measure: units of a value per event

	split     *splitter
	rank      []uint32 // by node: its rank by name, which is its number in the graph
	byRank    []uint32
	functions []stacks.Function // by node
	mapping   map[nameID]uint32
	location  []uint32 // by place
	entries   []uint32 // by node: location of the whole function; 0 until needed
	sink, arc []uint32 // by place and by call: index in the graph
	frames    []symbolize.Frame
	lines     []stacks.Line
	room      []stacks.Line // for the lines of the next locations
}

func newStacker(v *resolution, measures []measure, d detail) *stacker {
	s := &stacker{resolution: v, p: &stacks.Profile{}, detail: d, measures: measures, split: newSplitter(v)}
	for _, m := range measures {
		value, scale := stackValue(m.name)
		s.p.Values = append(s.p.Values, value)
		s.scale = append(s.scale, scale)
	}
	s.sortNodes()
	s.nameNodes()
	s.mappings()
	s.places()
	return s
}

// sortNodes ranks the nodes by name, file and object. The order of equal costs then does not
// depend on the profile's order.
func (s *stacker) sortNodes() {
	text := s.m.r.Text
	s.byRank = stacks.Order(len(s.all), func(a, b uint32) int {
		x, y := &s.all[a], &s.all[b]
		return cmp.Or(cmp.Compare(text(x.fn), text(y.fn)), cmp.Compare(text(x.file), text(y.file)), cmp.Compare(text(x.object), text(y.object)), cmp.Compare(a, b))
	})
	s.rank = make([]uint32, len(s.all))
	for i, n := range s.byRank {
		s.rank[n] = uint32(i)
	}
}

// nameNodes finds the function of each node. All levels of a recursion are one function, and so
// are nodes that differ only by caller.
func (s *stacker) nameNodes() {
	s.functions = make([]stacks.Function, len(s.all))
	for i := range s.all {
		n := &s.all[i]
		base, _ := s.split.split(s.m.r.Text(n.fn))
		f := stacks.Function{Name: s.shownName(base), LinkName: s.m.r.Text(n.link)}
		switch {
		case n.unknown && n.addr != 0 && !s.isUnknown(n.object):
			f.Name = fmt.Sprintf("%s+%#x", lastName(s.m.r.Text(n.object)), n.addr)
		case f.LinkName == "" && report.IsMangled(base):
			f.LinkName = base
		}
		if !s.isUnknown(n.file) {
			f.File = s.s.file(n.file)
		}
		s.functions[i] = f
	}
	s.firstLines()
}

// firstLines sets the first line of each function to its lowest known line, since pprof lists no
// earlier line. The line of the function's entry may be a line of inlined code.
func (s *stacker) firstLines() {
	first := make(map[stacks.Function]uint32)
	note := func(n, line uint32) {
		if f := s.functions[n]; line != 0 && (first[f] == 0 || line < first[f]) {
			first[f] = line
		}
	}
	for i := range s.all {
		note(uint32(i), s.all[i].line)
	}
	for i := range s.m.costs.keys {
		n, k := s.ofPlace[i], &s.m.costs.keys[i]
		if s.file[i] == s.all[n].file {
			note(n, s.line[i])
		}
		if s.needy[k.from] && k.addr != 0 {
			note(n, s.s.codeAt(location{s.m.functions[k.from].object, k.addr}).caller)
		}
	}
	for i, f := range s.functions {
		s.functions[i].Line = int64(first[f])
	}
}

// shownName returns the demangled name of a function, or "???" for no name.
func (s *stacker) shownName(name string) string {
	switch {
	case name == "":
		return unknown
	case report.IsMangled(name) && s.s.o.Symbolizer != nil:
		return s.s.o.Symbolizer.Demangle(name)
	}
	return name
}

// mappings adds the objects of the profile. The program is first, since viewers take the first
// mapping for it.
func (s *stacker) mappings() {
	program, _, _ := strings.Cut(s.m.head.command, " ")
	names := make(map[nameID]bool)
	for i := range s.all {
		names[s.all[i].object] = true
	}
	delete(names, 0)
	order := make([]nameID, 0, len(names))
	for n := range names {
		order = append(order, n)
	}
	other := func(n nameID) int { // rank of an object by name; 0 for the program
		switch text := s.m.r.Text(n); {
		case text == program:
			return 0
		case lastName(text) == lastName(program):
			return 1
		case !strings.Contains(lastName(text), ".so"):
			return 2
		}
		return 3
	}
	slices.SortFunc(order, func(a, b nameID) int {
		return cmp.Or(cmp.Compare(other(a), other(b)), cmp.Compare(s.m.r.Text(a), s.m.r.Text(b)))
	})
	s.mapping = make(map[nameID]uint32)
	for _, n := range order {
		m := stacks.Mapping{File: s.m.r.Text(n)}
		if m.File == unknown {
			continue
		}
		if f := s.s.objects.byName[n]; f != nil {
			if !f.ID.IsZero() {
				m.BuildID = f.ID.String()
			}
			if len(f.Code) > 0 { // the mapping must contain the addresses of the profile
				first, last := f.Code[0], f.Code[len(f.Code)-1]
				m.Start, m.Limit, m.Offset = first.Addr, last.Addr+last.MemSize, first.Offset
			}
		}
		s.mapping[n] = s.p.AddMapping(m.Symbolized())
	}
	if len(s.p.Mappings) == 0 && program != "" { // pprof warns about a profile without mappings
		s.p.AddMapping(stacks.Mapping{File: program}.Symbolized())
	}
}

func lastName(path string) string { return path[strings.LastIndexByte(path, '/')+1:] }

// places adds the locations of all places, in the order of their functions and lines.
func (s *stacker) places() {
	keys, text := s.m.costs.keys, s.m.r.Text
	s.location = make([]uint32, len(keys))
	if s.detail == byFunction {
		for i := range keys {
			s.location[i] = s.entry(s.ofPlace[i])
		}
		return
	}
	rank := s.functionRanks()
	order := stacks.Order(len(keys), func(a, b uint32) int {
		return cmp.Or(cmp.Compare(rank[s.ofPlace[a]], rank[s.ofPlace[b]]), cmp.Compare(text(s.file[a]), text(s.file[b])),
			cmp.Compare(s.line[a], s.line[b]), cmp.Compare(keys[a].addr, keys[b].addr), cmp.Compare(a, b))
	})
	for _, i := range order {
		s.location[i] = s.place(i)
	}
}

// functionRanks returns, by node, the rank of its function and object. Nodes of one function have
// equal ranks.
func (s *stacker) functionRanks() []uint32 {
	text := s.m.r.Text
	compare := func(a, b uint32) int {
		x, y := &s.functions[a], &s.functions[b]
		return cmp.Or(cmp.Compare(x.Name, y.Name), cmp.Compare(x.LinkName, y.LinkName), cmp.Compare(x.File, y.File), cmp.Compare(text(s.all[a].object), text(s.all[b].object)))
	}
	order := slices.Clone(s.byRank)
	slices.SortFunc(order, func(a, b uint32) int { return cmp.Or(compare(a, b), cmp.Compare(s.rank[a], s.rank[b])) })
	rank := make([]uint32, len(s.all))
	for i, n := range order {
		if rank[n] = uint32(i); i > 0 && compare(order[i-1], n) == 0 {
			rank[n] = rank[order[i-1]]
		}
	}
	return rank
}

// place adds the location of a place, with the inlined calls there.
func (s *stacker) place(i uint32) uint32 {
	k := &s.m.costs.keys[i]
	n := s.ofPlace[i]
	object := s.m.functions[k.from].object
	f := s.functions[n]
	s.frames = s.frames[:0]
	if s.needy[k.from] && k.addr != 0 {
		s.frames = s.s.objects.frames(s.frames, s.s.objects.file(object), k.addr)
	}
	s.lines = s.lines[:0]
	line := s.line[i]
	if last := len(s.frames) - 1; last > 0 {
		for j := range s.frames[:last] {
			in := &s.frames[j]
			s.lines = append(s.lines, s.lineOf(stacks.Function{Name: s.s.spell(in), LinkName: report.LinkName(in)}, in.File, in.Line, in.HasLine))
		}
		if out := &s.frames[last]; out.HasLine {
			line = out.Line
			f.File = s.s.o.report().ShownFile(out.File)
		}
	} else if file := s.file[i]; !s.isUnknown(file) {
		if shown := s.s.file(file); shown != f.File { // inlined code: only its line is known
			f.File, f.Line = shown, 0
		}
	}
	s.lines = append(s.lines, stacks.Line{Function: s.p.AddFunction(f), Line: int64(line)})
	l := stacks.Location{Mapping: s.mapping[object], Address: k.addr, Lines: s.lines}
	if s.detail == byLine {
		l.Address = 0
	}
	return s.addLocation(l)
}

// addLocation returns the number of a location, added unless it equals the last one. Equal
// locations are adjacent, since the places are sorted. An index of all locations would take
// more memory than the locations.
func (s *stacker) addLocation(l stacks.Location) uint32 {
	n := len(s.p.Locations)
	if n > 0 {
		last := &s.p.Locations[n-1]
		if last.Mapping == l.Mapping && last.Address == l.Address && slices.Equal(last.Lines, l.Lines) {
			return uint32(n)
		}
	}
	if cap(s.room)-len(s.room) < len(l.Lines) {
		s.room = make([]stacks.Line, 0, max(1<<10, len(l.Lines)))
	}
	at := len(s.room)
	s.room = append(s.room, l.Lines...)
	l.Lines = s.room[at:len(s.room):len(s.room)]
	s.p.Locations = append(s.p.Locations, l)
	return uint32(n + 1)
}

func (s *stacker) lineOf(f stacks.Function, file string, line uint32, known bool) stacks.Line {
	if !known {
		return stacks.Line{Function: s.p.AddFunction(f)}
	}
	f.File = s.s.o.report().ShownFile(file)
	return stacks.Line{Function: s.p.AddFunction(f), Line: int64(line)}
}

// entry returns a location of the whole function.
func (s *stacker) entry(n uint32) uint32 {
	if s.entries == nil {
		s.entries = make([]uint32, len(s.all))
	}
	if s.entries[n] == 0 {
		s.entries[n] = s.p.AddLocation(stacks.Location{Mapping: s.mapping[s.all[n].object], Lines: []stacks.Line{{Function: s.p.AddFunction(s.functions[n])}}})
	}
	return s.entries[n]
}

// graph returns the call graph of the profile.
func (s *stacker) graph() *stacks.Graph {
	g := &stacks.Graph{Nodes: len(s.all), Above: s.above}
	var arcs []stacks.Arc
	for i := range s.m.costs.keys {
		g.Sinks = append(g.Sinks, stacks.Sink{Node: s.rank[s.ofPlace[i]], Location: s.location[i]})
	}
	for i := range s.m.calls.keys {
		k := &s.m.calls.keys[i]
		arcs = append(arcs, stacks.Arc{From: s.rank[s.ofPlace[k.from]], To: s.rank[s.ofFunction[k.to]], Location: s.location[k.from]})
	}
	for i := range s.implied {
		c := &s.implied[i]
		arcs = append(arcs, stacks.Arc{From: s.rank[c.from], To: s.rank[c.to], Location: s.entry(c.from)})
	}
	g.Sinks, s.sink = merged(g.Sinks, func(a, b stacks.Sink) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Location, b.Location))
	})
	g.Arcs, s.arc = merged(arcs, func(a, b stacks.Arc) int {
		return cmp.Or(cmp.Compare(a.From, b.From), cmp.Compare(a.To, b.To), cmp.Compare(a.Location, b.Location))
	})
	return g
}

// merged sorts the elements of all, and returns them without duplicates in once. For each element
// of all, index has the position of the equal element in once.
func merged[E comparable](all []E, compare func(a, b E) int) (once []E, index []uint32) {
	index = make([]uint32, len(all))
	for _, i := range stacks.Order(len(all), func(a, b uint32) int { return compare(all[a], all[b]) }) {
		if n := len(once); n == 0 || once[n-1] != all[i] {
			once = append(once, all[i])
		}
		index[i] = uint32(len(once) - 1)
	}
	return once, index
}

// costs sums one measure for the graph: it adds the costs of places to sinks, and the costs of
// calls to arcs. value is the index of the measure.
func (s *stacker) costs(value int, sinks, arcs []int64) {
	m, scale := &s.measures[value], s.scale[value]
	add := func(to *int64, costs []int64) { *to = stacks.Plus(*to, stacks.Times(scale, m.value(costs))) }
	for i := range s.m.costs.keys {
		add(&sinks[s.sink[i]], s.m.costs.countsOf(i))
	}
	calls := len(s.m.calls.keys)
	for i := range calls {
		add(&arcs[s.arc[i]], s.m.calls.countsOf(i)[1:])
	}
	for i := range s.implied {
		add(&arcs[s.arc[calls+i]], s.implied[i].costs)
	}
}

// above returns the locations of the callers in a function's name (--separate-callers), innermost
// first.
func (s *stacker) above(rank uint32) (locations []uint32) {
	n := s.byRank[rank]
	_, callers := s.split.split(s.m.r.Text(s.all[n].fn))
	for _, name := range callers {
		locations = append(locations, s.entry(s.split.known[name])) // split checks the name
	}
	return locations
}

// comment adds comments for readers of the profile: its producer, and costs without stacks.
func (s *stacker) comment(h *headings, loss stacks.Loss) {
	comments := []string{guess}
	if h.command != "" {
		comments = append(comments, "command: "+h.command)
	}
	if h.creator != "" {
		comments = append(comments, "recorded by "+h.creator)
	}
	for i, v := range s.p.Values {
		if n := loss.Recursion[i]; n != 0 {
			comments = append(comments, fmt.Sprintf("costs of recursive calls are left out, because the costs of other calls include them: %d %s", n, v.Name))
		}
		if n := loss.Unplaced[i]; n != 0 {
			comments = append(comments, fmt.Sprintf("costs without callers, for lack of memory: %d %s", n, v.Name))
		}
	}
	s.p.Comments = comments
}
