package callgrind

import (
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// reportVersion begins each object: it changes when a field changes its meaning
// or goes, not when one is added.
const reportVersion = `{"v":1`

// object begins an object.
func (p *printer) object(record string) {
	p.b = escape.AppendMember(append(p.b, reportVersion...), "record", record)
}

// end ends one.
func (p *printer) end() {
	p.b = append(p.b, "}\n"...)
	p.send()
}

// jsonPart prints what a part cost.
func (r *Report) jsonPart() {
	p := &r.out
	p.object("part")
	p.b = strconv.AppendInt(escape.AppendKey(p.b, "part"), int64(r.m.head.parts), 10)
	for _, m := range []struct{ name, value string }{{"thread", r.m.head.thread}, {"trigger", r.m.head.trigger}} {
		if m.value != "" {
			p.b = escape.AppendMember(p.b, m.name, m.value)
		}
	}
	p.b = appendCosts(p.b, "total", counted(r.Events()), r.m.sums.ended)
	p.b = appendCosts(p.b, "lines", counted(r.Events()), r.m.sums.lines)
	p.end()
}

// counted returns the measures of events that were counted.
func counted(events []Event) []measure {
	all := make([]measure, len(events))
	for i, e := range events {
		w := make([]int64, len(events))
		w[i] = 1
		all[i] = measure{e.Name, e.Long, w}
	}
	return all
}

// appendCosts appends a member that says what something cost.
func appendCosts(b []byte, name string, measures []measure, costs []int64) []byte {
	b = append(escape.AppendKey(b, name), '{')
	for i := range measures {
		b = strconv.AppendInt(appendName(b, measures[i].name), measures[i].of(costs), 10)
	}
	return append(b, '}')
}

// json prints the profile: what is in it, its objects, its places, and its
// functions in the order of a table.
func (r *Report) json(g *graph) {
	t := &listing{printer: &r.out, o: r.o, g: g}
	if r.failed = t.choose(); r.failed != nil {
		return
	}
	j := &objectPrinter{listing: t, measures: counted(r.Events())}
	for _, e := range r.Derived() {
		if w, err := r.ev.weights(e); err == nil {
			j.measures = append(j.measures, measure{e.Name, e.Long, w})
		}
	}
	j.profile(r)
	j.objects()
	j.places()
	for _, n := range t.order {
		j.function(n)
	}
}

// An objectPrinter prints a graph as objects.
type objectPrinter struct {
	*listing
	measures []measure
	frames   []symbolize.Frame
}

func (j *objectPrinter) text(n Name) string { return j.g.m.r.Text(n) }

func (j *objectPrinter) profile(r *Report) {
	h := &r.m.head
	j.object("profile")
	for _, m := range []struct{ name, value string }{{"name", r.o.Label}, {"creator", h.creator}, {"command", h.command}, {"pid", h.pid}} {
		if m.value != "" {
			j.b = escape.AppendMember(j.b, m.name, m.value)
		}
	}
	j.b = strconv.AppendInt(escape.AppendKey(j.b, "parts"), int64(h.parts), 10)
	j.b = strconv.AppendInt(escape.AppendKey(j.b, "threads"), int64(max(1, len(h.threads))), 10)
	j.b = append(escape.AppendKey(j.b, "events"), '[')
	for i, e := range append(slices.Clone(r.Events()), r.Derived()...) {
		if i > 0 {
			j.b = append(j.b, ',')
		}
		j.b = escape.AppendMember(append(j.b, '{'), "name", e.Name)
		if e.Long != "" {
			j.b = escape.AppendMember(j.b, "long", e.Long)
		}
		if e.Terms != nil {
			j.b = escape.AppendMember(j.b, "formula", e.Formula)
		}
		j.b = append(j.b, '}')
	}
	j.b = appendCosts(append(j.b, ']'), "total", j.measures, j.g.total)
	if r.m.sums.calculated {
		j.b = append(j.b, `,"calculated":true`...)
	}
	j.end()
}

// objects prints the files of the profile's objects.
func (j *objectPrinter) objects() {
	var all []Name
	for n := range j.g.s.objects.byName {
		all = append(all, n)
	}
	slices.Sort(all)
	for _, n := range all {
		f := j.g.s.objects.byName[n]
		if f == nil {
			continue
		}
		j.object("object")
		j.b = escape.AppendMember(j.b, "object", f.Name)
		j.b = escape.AppendMember(j.b, "path", f.Path)
		if !f.ID.IsZero() {
			j.b = escape.AppendMember(j.b, "build_id", f.ID.String())
		}
		err := f.Err
		if err == nil {
			err = f.failed
		}
		if err != nil {
			j.b = escape.AppendMember(j.b, "reason", err.Error())
		}
		j.end()
	}
}

// places prints what each place cost, with the frames there.
func (j *objectPrinter) places() {
	m := j.g.m
	sum := make([]int64, j.g.width)
	j.g.eachPlace(func(same []uint32) {
		k := &m.costs.keys[same[0]]
		clear(sum)
		for _, i := range same {
			add(sum, m.costs.of(int(i)))
		}
		ob := m.functions[k.from].object
		j.object("location")
		if text := j.text(ob); text != "" {
			j.b = escape.AppendMember(j.b, "object", text)
		}
		if k.addr != 0 {
			j.b = escape.AppendHex(j.b, "address", k.addr)
		}
		n := j.g.ofPlace[same[0]]
		j.b = strconv.AppendUint(escape.AppendKey(j.b, "function"), uint64(n), 10)
		j.frames = j.frames[:0]
		if j.g.needy[k.from] && k.addr != 0 {
			j.frames = j.g.s.objects.frames(j.frames, j.g.s.objects.of(ob), k.addr)
		}
		switch {
		case len(j.frames) > 0:
			j.b = escape.AppendMember(j.b, "source", "symbols")
			j.b = j.appendFrames(j.b)
		case j.g.all[n].unknown:
		default:
			j.b = escape.AppendMember(j.b, "source", "profile")
			j.b = append(escape.AppendKey(j.b, "frames"), '[', '{')
			j.b = escape.AppendMember(j.b, "function", j.g.title(n))
			if at := j.g.file[same[0]]; !j.g.isUnknown(at) {
				j.b = escape.AppendMember(j.b, "file", j.g.s.file(at))
				j.b = strconv.AppendUint(escape.AppendKey(j.b, "line"), uint64(j.g.line[same[0]]), 10)
			}
			j.b = append(j.b, `,"inlined":false}]`...)
		}
		j.b = appendCosts(j.b, "self", j.measures, sum)
		j.end()
	})
}

// appendFrames appends the frames of a place.
func (j *objectPrinter) appendFrames(b []byte) []byte {
	b = append(escape.AppendKey(b, "frames"), '[')
	for i := range j.frames {
		f := &j.frames[i]
		if i > 0 {
			b = append(b, ',')
		}
		b = escape.AppendMember(append(b, '{'), "function", f.Func)
		if f.Linkage != "" && f.Linkage != f.Func {
			b = escape.AppendMember(b, "linkage", f.Linkage)
		}
		if f.HasLine {
			b = escape.AppendMember(b, "file", j.g.s.o.ShownFile(f.File))
			b = strconv.AppendUint(escape.AppendKey(b, "line"), uint64(f.Line), 10)
			b = strconv.AppendUint(escape.AppendKey(b, "column"), uint64(f.Column), 10)
		} else {
			b = escape.AppendHex(b, "offset", f.Offset)
		}
		b = append(strconv.AppendBool(escape.AppendKey(b, "inlined"), f.Inlined), '}')
	}
	return append(b, ']')
}

// function prints a function.
func (j *objectPrinter) function(n uint32) {
	g := j.g
	at := &g.all[n]
	j.object("function")
	j.b = strconv.AppendUint(escape.AppendKey(j.b, "id"), uint64(n), 10)
	j.b = escape.AppendMember(j.b, "function", g.title(n))
	link := j.text(at.link)
	if link == "" && report.IsMangled(j.text(at.fn)) {
		link = j.text(at.fn)
	}
	if link != "" && link != g.title(n) {
		j.b = escape.AppendMember(j.b, "linkage", link)
	}
	if text := j.text(at.object); text != "" {
		j.b = escape.AppendMember(j.b, "object", text)
	}
	if !g.isUnknown(at.file) {
		j.b = escape.AppendMember(j.b, "file", g.s.file(at.file))
		if at.line != 0 {
			j.b = strconv.AppendUint(escape.AppendKey(j.b, "line"), uint64(at.line), 10)
		}
	}
	if at.addr != 0 {
		j.b = escape.AppendHex(j.b, "address", at.addr)
	}
	if at.unknown {
		j.b = append(j.b, `,"unknown":true`...)
	}
	if g.approximate[n] {
		j.b = append(j.b, `,"approximate":true`...)
	}
	j.b = strconv.AppendInt(escape.AppendKey(j.b, "calls"), g.calls[n], 10)
	j.b = appendCosts(j.b, "self", j.measures, g.selfOf(n))
	j.b = appendCosts(j.b, "inclusive", j.measures, g.inclOf(n))
	j.b = append(escape.AppendKey(j.b, "files"), '[')
	for i, f := range g.filesOf(n) {
		if i > 0 {
			j.b = append(j.b, ',')
		}
		j.b = append(j.b, '{')
		if !g.isUnknown(f.name) {
			j.b = escape.AppendMember(j.b, "file", g.s.file(f.name))
		}
		j.b = append(appendCosts(j.b, "self", j.measures, f.costs), '}')
	}
	j.b = append(j.b, ']')
	first, end := g.callees(n)
	var out []uint32
	for e := first; e < end; e++ {
		out = append(out, e)
	}
	j.edges("callers", g.callersOf(n), func(e edge) uint32 { return e.from })
	j.edges("callees", out, func(e edge) uint32 { return e.to })
	j.end()
}

func (j *objectPrinter) edges(name string, edges []uint32, other func(edge) uint32) {
	j.b = append(escape.AppendKey(j.b, name), '[')
	for i, at := range edges {
		if i > 0 {
			j.b = append(j.b, ',')
		}
		e := j.g.edges[at]
		j.b = append(j.b, '{')
		j.b = strconv.AppendUint(escape.AppendKey(j.b, "id"), uint64(other(e)), 10)
		j.b = escape.AppendMember(j.b, "function", j.g.title(other(e)))
		j.b = strconv.AppendInt(escape.AppendKey(j.b, "calls"), e.count, 10)
		if e.implied {
			j.b = append(j.b, `,"approximate":true`...)
		}
		j.b = append(appendCosts(j.b, "inclusive", j.measures, j.g.edgeCost(at)), '}')
	}
	j.b = append(j.b, ']')
}

// appendName appends the name of a member that a profile chose.
func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	return append(escape.AppendString(b, name), ':')
}
