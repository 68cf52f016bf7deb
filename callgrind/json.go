package callgrind

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
	"github.com/symfilter/symfilter/symbolize"
)

// object begins an object with the given record type.
func (p *printer) object(record string) *jsonout.Buffer {
	b := (*jsonout.Buffer)(&p.b)
	b.Line()
	b.Members(p.members)
	b.String("record", record)
	return b
}

func (p *printer) end(b *jsonout.Buffer) {
	b.EndLine()
	p.send()
}

func (r *Report) jsonPart() {
	p := &r.out
	b := p.object("part")
	b.Int("part", int64(r.m.head.parts))
	if n, err := strconv.ParseInt(r.m.head.number, 10, 64); err == nil {
		b.Int("number", n)
	}
	b.Optional("thread", r.m.head.thread)
	b.Optional("trigger", r.m.head.trigger)
	if len(r.m.head.all) > 0 {
		appendTexts(b, "desc", r.m.head.all)
	}
	appendCosts(b, "total", counted(r.reader.Events()), r.m.sums.ended)
	appendCosts(b, "lines", counted(r.reader.Events()), r.m.sums.lines)
	p.end(b)
}

func counted(events []eventType) []measure {
	all := make([]measure, len(events))
	for i, e := range events {
		all[i] = measure{e.Name, e.Long, []weight{{i, 1}}}
	}
	return all
}

// measures returns the measures of all events, calculated events last.
func (r *recordReader) measures() []measure {
	all := counted(r.Events())
	for _, e := range r.Derived() {
		if w, err := r.ev.weights(e); err == nil {
			all = append(all, newMeasure(e, w))
		}
	}
	return all
}

func appendTexts(b *jsonout.Buffer, name string, texts []string) {
	b.Array(name)
	for _, text := range texts {
		b.StringItem([]byte(text))
	}
	b.EndArray()
}

func appendCosts(b *jsonout.Buffer, name string, measures []measure, costs []int64) {
	b.Object(name)
	for i := range measures {
		b.Key([]byte(measures[i].name))
		b.IntItem(measures[i].value(costs))
	}
	b.EndObject()
}

// json prints the profile as objects: its header, object files, places and jumps, then its
// functions, in the order of a table.
func (r *Report) json(g *graph) {
	t := &listing{printer: &r.out, o: r.o, g: g}
	if r.failed = t.choose(); r.failed != nil {
		return
	}
	j := &objectPrinter{listing: t, measures: r.reader.measures()}
	j.profile(r)
	j.objects()
	j.places()
	j.jumps()
	for _, n := range t.order {
		j.function(n)
	}
}

// An objectPrinter prints a graph as JSON objects.
type objectPrinter struct {
	*listing
	measures []measure
	frames   []symbolize.Frame
}

func (j *objectPrinter) text(n nameID) string { return j.g.m.r.Text(n) }

func (j *objectPrinter) profile(r *Report) {
	h := &r.m.head
	b := j.object("profile")
	b.Optional("name", cmp.Or(append(slices.Clone(r.in.labels), r.o.Label)...))
	if len(r.in.labels) > 1 {
		appendTexts(b, "inputs", r.in.labels)
	}
	b.Optional("creator", h.creator)
	b.Optional("command", h.command)
	b.Optional("pid", h.pid)
	b.Int("parts", int64(h.parts))
	b.Int("threads", int64(max(1, len(h.threads))))
	b.Array("events")
	for _, e := range append(slices.Clone(r.reader.Events()), r.reader.Derived()...) {
		b.Item()
		b.String("name", e.Name)
		b.Optional("long", e.Long)
		if e.Terms != nil {
			b.String("formula", e.Formula)
		}
		b.EndObject()
	}
	b.EndArray()
	appendCosts(b, "total", j.measures, j.g.total)
	if r.m.sums.calculated {
		b.Bool("calculated", true)
	}
	j.end(b)
}

func (j *objectPrinter) objects() {
	for _, n := range slices.Sorted(maps.Keys(j.g.s.objects.byName)) {
		f := j.g.s.objects.byName[n]
		if f == nil {
			continue
		}
		b := j.object("object")
		b.String("object", f.Name)
		b.String("path", f.Path)
		b.BuildID(f.ID)
		if err := cmp.Or(f.Err, f.failed); err != nil {
			b.Reason(err)
		}
		j.end(b)
	}
}

// places prints the costs of each place, with the frames there.
func (j *objectPrinter) places() {
	m := j.g.m
	sum := make([]int64, j.g.width)
	j.g.eachPlace(func(same []uint32) {
		k := &m.costs.keys[same[0]]
		clear(sum)
		for _, i := range same {
			stacks.AddTo(sum, m.costs.countsOf(int(i)))
		}
		ob := m.functions[k.from].object
		b := j.object("location")
		b.Optional("object", j.text(ob))
		if k.addr != 0 {
			b.Hex("address", k.addr)
		}
		n := j.g.ofPlace[same[0]]
		b.Uint("function", uint64(n))
		j.frames = j.frames[:0]
		if j.g.needy[k.from] && k.addr != 0 {
			j.frames = j.g.s.objects.frames(j.frames, j.g.s.objects.file(ob), k.addr)
		}
		switch {
		case len(j.frames) > 0:
			for i := range j.frames {
				f := &j.frames[i]
				if f.HasLine {
					f.File = j.g.s.o.report().ShownFile(f.File)
				} else {
					f.File = ""
				}
			}
			b.String("source", "symbols")
			b.Frames(j.frames)
		case j.g.all[n].unknown:
		default:
			b.String("source", "profile")
			b.Array("frames")
			b.Item()
			b.String("function", j.g.title(n))
			if at := j.g.file[same[0]]; !j.g.isUnknown(at) {
				b.String("file", j.g.s.file(at))
				b.Uint("line", uint64(j.g.line[same[0]]))
			} else if line := j.g.line[same[0]]; line != 0 {
				b.Uint("line", uint64(line))
			}
			b.Bool("inlined", false)
			b.EndObject()
			b.EndArray()
		}
		appendCosts(b, "self", j.measures, sum)
		j.end(b)
	})
}

// jumps prints the jumps, in the order of the profile.
func (j *objectPrinter) jumps() {
	m := j.g.m
	for i := range m.jumps.keys {
		k := &m.jumps.keys[i]
		at := &m.costs.keys[k.from]
		to := j.g.jumpTarget(k)
		b := j.object("jump")
		b.Optional("object", j.text(m.functions[at.from].object))
		j.endOfJump(b, "from", at.addr, jumpTarget{j.g.ofPlace[k.from], j.g.file[k.from], uint64(j.g.line[k.from])})
		j.endOfJump(b, "to", k.addr, to)
		counts := m.jumps.countsOf(i)
		b.Int("jumps", counts[0])
		if k.to&1 != 0 {
			b.Int("executed", counts[1])
		}
		j.end(b)
	}
}

func (j *objectPrinter) endOfJump(b *jsonout.Buffer, name string, addr uint64, at jumpTarget) {
	b.Object(name)
	if addr != 0 {
		b.Hex("address", addr)
	}
	b.Uint("function", uint64(at.node))
	if !j.g.isUnknown(at.file) {
		b.String("file", j.g.s.file(at.file))
	}
	if at.line != 0 {
		b.Uint("line", at.line)
	}
	b.EndObject()
}

func (j *objectPrinter) function(n uint32) {
	g := j.g
	at := &g.all[n]
	b := j.object("function")
	b.Uint("id", uint64(n))
	link := j.text(at.link)
	if link == "" && report.IsMangled(j.text(at.fn)) {
		link = j.text(at.fn)
	}
	b.Function(g.title(n), link)
	b.Optional("object", j.text(at.object))
	if !g.isUnknown(at.file) {
		b.String("file", g.s.file(at.file))
	}
	if at.line != 0 {
		b.Uint("line", uint64(at.line))
	}
	if at.addr != 0 {
		b.Hex("address", at.addr)
	}
	if at.unknown {
		b.Bool("unknown", true)
	}
	if g.approximate[n] {
		b.Bool("approximate", true)
	}
	if c := g.cycleNumber(n); c > 0 {
		b.Uint("cycle", uint64(c))
	}
	b.Int("calls", g.calls[n])
	appendCosts(b, "self", j.measures, g.selfOf(n))
	appendCosts(b, "inclusive", j.measures, g.inclOf(n))
	b.Array("files")
	for _, f := range g.filesOf(n) {
		b.Item()
		if !g.isUnknown(f.name) {
			b.String("file", g.s.file(f.name))
		}
		appendCosts(b, "self", j.measures, f.costs)
		b.EndObject()
	}
	b.EndArray()
	j.edges(b, "callers", slices.Values(g.callersOf(n)), func(e edge) uint32 { return e.from })
	j.edges(b, "callees", g.callees(n), func(e edge) uint32 { return e.to })
	j.end(b)
}

func (j *objectPrinter) edges(b *jsonout.Buffer, name string, edges iter.Seq[uint32], other func(edge) uint32) {
	b.Array(name)
	for at := range edges {
		e := j.g.edges[at]
		b.Item()
		b.Uint("id", uint64(other(e)))
		b.String("function", j.g.title(other(e)))
		b.Int("calls", e.count)
		if e.implied {
			b.Bool("approximate", true)
		}
		appendCosts(b, "inclusive", j.measures, j.g.edgeCost(at))
		b.EndObject()
	}
	b.EndArray()
}
