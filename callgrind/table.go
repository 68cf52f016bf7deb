package callgrind

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
	"github.com/symfilter/symfilter/internal/wording"
)

const (
	tableWidth   = 100 // columns of a line
	numbersWidth = 60  // columns for numbers, if Options.Show is empty
	shareWidth   = len(" 100.0%")
)

// A measure is an event whose costs a table shows.
type measure struct {
	name, long string
	weights    []weight // nonzero weights; a counted event has one
}

// A weight is the factor of a counted event in a measure. Weights of 0 are not stored, since
// they would slow down the comparison of functions with equal costs.
type weight struct {
	event  int // index of the counted event
	factor int64
}

// newMeasure returns the measure of an event. factors has the factor of each counted event.
func newMeasure(e eventType, factors []int64) measure {
	m := measure{name: e.Name, long: e.Long}
	for i, f := range factors {
		if f != 0 {
			m.weights = append(m.weights, weight{i, f})
		}
	}
	return m
}

func (m *measure) value(costs []int64) (n int64) {
	for _, w := range m.weights {
		if w.event < len(costs) {
			n = stacks.Plus(n, stacks.Times(w.factor, costs[w.event]))
		}
	}
	return n
}

// A column shows the costs of functions by one measure.
type column struct {
	measure
	inclusive bool
	width     int // characters of the numbers
	total     int64
}

// A listing is the table that a report prints.
type listing struct {
	*printer
	o       *Options
	g       *graph
	columns []column
	calls   int // width of the number of calls; 0 if the profile has no calls
	order   []uint32
	sorting []measure
	left    []string // events without a column
	marked  bool     // an approximate value was shown
}

func (r *Report) table(g *graph) {
	t := &listing{printer: &r.out, o: r.o, g: g}
	if err := t.choose(); err != nil {
		r.failed = err
		return
	}
	t.heading(&r.m.head, r.describe())
	t.list()
	if r.o.Source {
		t.sources()
	}
}

// An EventError reports that Options.Show or Options.Sort names an event that the profile does not
// have, or defines one wrongly.
type EventError struct{ Err error }

func (e *EventError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *EventError) Unwrap() error { return e.Err }

// measures returns the measures for events given by name or by definition.
func (v *resolution) measures(names []string) (all []measure, err error) {
	ev := &v.m.r.ev
	for _, name := range names {
		e, ok := ev.find(strings.TrimSpace(name))
		if !ok {
			e = eventType{Name: name}
			if strings.Contains(name, "=") {
				if e, err = parseEvent(name); err != nil {
					return nil, &EventError{err}
				}
			}
		}
		w, err := ev.weights(e)
		if err != nil {
			return nil, &EventError{err}
		}
		all = append(all, newMeasure(e, w))
	}
	return all, nil
}

// choose selects the columns and the order of the functions.
func (t *listing) choose() (err error) {
	g := t.g
	names := t.o.Show
	if len(names) == 0 {
		first := 0 // the first event with costs
		for i, e := range g.m.r.Events() {
			names = append(names, e.Name)
			if first == i && i+1 < len(g.total) && g.total[i] == 0 {
				first++
			}
		}
		if first < len(names) && g.total[first] != 0 {
			name := names[first]
			names = slices.Insert(slices.Delete(names, first, first+1), 0, name)
		}
	}
	shown, err := g.measures(names)
	if err != nil {
		return err
	}
	t.sorting = shown
	if len(t.o.Sort) > 0 {
		if t.sorting, err = g.measures(t.o.Sort); err != nil {
			return err
		}
	}
	t.sort()
	called := len(g.edges) > 0 // without calls, inclusive costs equal the functions' own
	if called {
		t.calls = len("calls")
		for _, n := range g.calls {
			t.calls = max(t.calls, numberWidth(n))
		}
	}
	used := t.calls
	for i, m := range shown {
		kinds := []bool{t.o.Inclusive && called}
		if i == 0 && called {
			kinds = []bool{true, false}
		}
		var added []column
		need := 0
		for _, inclusive := range kinds {
			c := column{measure: m, inclusive: inclusive, total: m.value(g.total)}
			c.width = max(numberWidth(c.total), utf8.RuneCountInString(c.heading())-shareWidth)
			for _, n := range t.order {
				c.width = max(c.width, numberWidth(t.cost(&c, n)))
			}
			added = append(added, c)
			need += c.width + shareWidth + 2
		}
		if i > 0 && len(t.o.Show) == 0 && used+need > numbersWidth {
			t.left = append(t.left, m.name)
			continue
		}
		used += need
		t.columns = append(t.columns, added...)
	}
	if len(t.o.Show) == 0 {
		for _, e := range g.m.r.Derived() {
			t.left = append(t.left, e.Name)
		}
	}
	return nil
}

func (c *column) heading() string {
	if c.inclusive {
		return c.name + " incl"
	}
	return c.name + " self"
}

func (t *listing) cost(c *column, n uint32) int64 {
	if c.inclusive {
		return c.value(t.g.inclOf(n))
	}
	return c.value(t.g.selfOf(n))
}

// sort sets t.order to the present functions, by decreasing cost.
func (t *listing) sort() {
	g := t.g
	costs := func(n uint32) []int64 {
		if t.o.Inclusive {
			return g.inclOf(n)
		}
		return g.selfOf(n)
	}
	keys := make([]int64, len(g.all))
	for n := range g.all {
		if g.isPresent(uint32(n)) {
			t.order = append(t.order, uint32(n))
		}
		if len(t.sorting) > 0 {
			keys[n] = t.sorting[0].value(costs(uint32(n)))
		}
	}
	slices.SortFunc(t.order, func(a, b uint32) int {
		if c := cmp.Compare(keys[b], keys[a]); c != 0 {
			return c
		}
		if c := t.costlier(costs(a), costs(b)); c != 0 {
			return c
		}
		return g.compare(a, b)
	})
}

// costlier compares costs by the events of t.sorting, larger costs first.
func (t *listing) costlier(a, b []int64) int {
	for i := range t.sorting {
		if c := cmp.Compare(t.sorting[i].value(b), t.sorting[i].value(a)); c != 0 {
			return c
		}
	}
	return 0
}

// isPresent reports whether a function has costs or calls, or was called.
func (g *graph) isPresent(n uint32) bool {
	return !isZero(g.selfOf(n)) || !isZero(g.inclOf(n)) || g.calls[n] != 0 || len(g.callersOf(n)) > 0 || g.from.First[n] != g.from.First[n+1]
}

// compare orders functions by name, then by file and object.
func (g *graph) compare(a, b uint32) int {
	x, y := &g.all[a], &g.all[b]
	text := g.m.r.Text
	return cmp.Or(cmp.Compare(text(x.fn), text(y.fn)), cmp.Compare(text(x.file), text(y.file)), cmp.Compare(text(x.object), text(y.object)))
}

// A style is the escape sequence of a text style on a terminal.
type style string

const (
	plain style = ""
	bold  style = "\x1b[1m"
	faint style = "\x1b[2m"
	hot   style = "\x1b[1;31m"
	warm  style = "\x1b[33m"
	good  style = "\x1b[32m"
)

func (t *listing) put(s style, text string) {
	if !t.o.Color || s == plain || text == "" {
		t.b = append(t.b, text...)
		return
	}
	t.b = append(append(append(t.b, s...), text...), "\x1b[0m"...)
}

func (t *listing) pad(n int) {
	for range n {
		t.b = append(t.b, ' ')
	}
}

// heading prints the name of the profiled program, and the total costs.
func (t *listing) heading(h *headings, profile string) {
	line := func(name, value string) {
		if value != "" {
			name = string(escape.AppendText(nil, name, ""))
			t.put(faint, name)
			t.pad(max(1, 10-len(name)))
			t.b = append(escape.AppendText(t.b, value, ""), '\n')
		}
	}
	line("Profile", profile)
	command := h.command
	if n := len(h.pids); n > 1 {
		command = strings.TrimSpace(command + "  (" + strconv.Itoa(n) + " processes)")
	} else if h.pid != "" {
		command = strings.TrimSpace(command + "  (PID " + h.pid + ")")
	}
	line("Command", command)
	for _, d := range h.descriptions {
		if name, value, _ := strings.Cut(d, ":"); strings.HasSuffix(name, "cache") {
			line(name, strings.TrimSpace(value))
		}
	}
	for i := range t.columns {
		c := &t.columns[i]
		if i == 1 && t.columns[0].inclusive {
			continue // already shown: the first measure has two columns
		}
		name := ""
		if i == 0 {
			name = "Total"
		}
		t.put(faint, (name + strings.Repeat(" ", 10))[:10])
		t.put(bold, commas(c.total))
		t.b = escape.AppendText(append(t.b, ' '), c.name, "")
		if c.long != "" {
			t.put(faint, " ("+string(escape.AppendText(nil, c.long, ""))+")")
		}
		t.b = append(t.b, '\n')
	}
	if len(t.left) > 0 {
		line("Also", strings.Join(t.left, ", ")+"  (--show="+t.left[0]+",… shows them)")
	}
	t.b = append(t.b, '\n')
	for i := range t.columns {
		c := &t.columns[i]
		text := string(escape.AppendText(nil, c.heading(), ""))
		t.pad(c.width + shareWidth - utf8.RuneCountInString(text))
		t.put(bold, text)
		t.b = append(t.b, "  "...)
	}
	if t.calls > 0 {
		t.pad(t.calls - len("calls"))
		t.put(bold, "calls")
		t.b = append(t.b, "  "...)
	}
	t.put(bold, "function")
	t.put(faint, "  file:line [object]")
	t.b = append(t.b, '\n')
}

// list prints the functions that account for most of the costs.
func (t *listing) list() {
	g := t.g
	threshold := t.threshold()
	var total, sum int64
	if len(t.sorting) > 0 {
		total = t.sorting[0].value(g.total)
	}
	shown := 0
	cycles := make(map[uint32]bool)
	for _, n := range t.order {
		if threshold < 100 && len(t.sorting) > 0 {
			if t.o.Inclusive {
				if shown > 0 && float64(t.sorting[0].value(g.inclOf(n)))*100 < float64(total)*(100-threshold) {
					break
				}
			} else if float64(sum)*100 >= float64(total)*threshold {
				break
			}
			sum = stacks.Plus(sum, t.sorting[0].value(g.selfOf(n)))
		}
		shown++
		cycles[t.g.cycle[n]] = true
		if t.o.Tree != 0 {
			t.b = append(t.b, '\n')
		}
		if t.o.Tree&Callers != 0 {
			t.neighbours(slices.Clone(g.callersOf(n)), "<  ", func(e edge) uint32 { return e.from })
		}
		mark := ""
		if t.o.Tree != 0 {
			mark = "*  "
		}
		t.function(n, mark)
		if t.o.Tree&Calling != 0 {
			t.neighbours(slices.Collect(g.callees(n)), "  >  ", func(e edge) uint32 { return e.to })
		}
		t.send()
	}
	t.b = append(t.b, '\n')
	if rest := len(t.order) - shown; rest > 0 {
		t.put(faint, "and "+functions(int64(rest))+" more (--threshold=100 shows all)\n")
	}
	t.cycles(cycles)
	t.nameless()
	if t.marked {
		t.put(faint, "~ approximate: tail calls in stripped code are not fully recorded\n")
	}
}

// cycles prints the whole cost of each cycle with a function in the table.
func (t *listing) cycles(shown map[uint32]bool) {
	g := t.g
	for _, c := range slices.SortedFunc(maps.Keys(shown), func(a, b uint32) int { return cmp.Compare(g.cycleOf[a], g.cycleOf[b]) }) {
		if g.cycleOf[c] == 0 {
			continue
		}
		line := "<cycle " + strconv.FormatUint(uint64(g.cycleOf[c]), 10) + ">: " + functions(int64(g.members[c])) + " that call each other"
		if len(t.sorting) > 0 {
			m := &t.sorting[0]
			cost := m.value(g.whole[int(c)*g.width:][:g.width])
			line += "; cost of the cycle and all functions that it calls: " + commas(cost) + " " + m.name + share(cost, m.value(g.total))
		}
		t.put(faint, string(escape.AppendText(nil, line, "")))
		t.b = append(t.b, '\n')
	}
}

// nameless prints the number of functions with only addresses, and their objects.
func (t *listing) nameless() {
	needed := t.g.needed
	var where []string
	for _, n := range slices.SortedFunc(maps.Keys(needed), func(a, b nameID) int {
		return cmp.Or(cmp.Compare(needed[b], needed[a]), cmp.Compare(a, b))
	}) {
		if needed[n] > 0 {
			where = append(where, commas(int64(needed[n]))+" in "+path.Base(t.g.m.r.Text(n)))
		}
	}
	if len(where) == 0 {
		return
	}
	const most = 4
	if len(where) > most {
		where = append(where[:most], "others")
	}
	t.put(faint, string(escape.AppendText(nil, "functions without names: "+strings.Join(where, ", ")+" (reasons: --explain)", "")))
	t.b = append(t.b, '\n')
}

// threshold returns the percentage of the costs that the table shows. It is 100 if the event that
// orders the functions has negative costs.
func (t *listing) threshold() float64 {
	for i := range t.sorting[:min(1, len(t.sorting))] {
		for _, w := range t.sorting[i].weights {
			if w.event < len(t.g.signed) && t.g.signed[w.event] {
				return 100 // with negative costs, functions have no shares of the total
			}
		}
	}
	return cmp.Or(t.o.Threshold, defaultThreshold)
}

// defaultThreshold is the default of callgrind_annotate.
const defaultThreshold = 99 // percent

// neighbours prints the given edges of a function, by decreasing cost. other returns the node at
// the other end of an edge.
func (t *listing) neighbours(edges []uint32, mark string, other func(edge) uint32) {
	g := t.g
	slices.SortFunc(edges, func(a, b uint32) int {
		if c := t.costlier(g.edgeCost(a), g.edgeCost(b)); c != 0 {
			return c
		}
		return g.compare(other(g.edges[a]), other(g.edges[b]))
	})
	for _, e := range edges {
		for i := range t.columns {
			c := &t.columns[i]
			if c.inclusive || i > 1 {
				t.number(c, c.value(g.edgeCost(e)), faint)
			} else {
				t.pad(c.width + shareWidth)
			}
			t.b = append(t.b, "  "...)
		}
		at := other(g.edges[e])
		t.name(at, g.edges[e].count, mark, g.edges[e].implied, faint)
	}
}

func (t *listing) function(n uint32, mark string) {
	for i := range t.columns {
		c := &t.columns[i]
		t.number(c, t.cost(c, n), plain)
		t.b = append(t.b, "  "...)
	}
	t.name(n, t.g.calls[n], mark, t.g.approximate[n], bold)
}

// number prints a cost and its share of the total.
func (t *listing) number(c *column, n int64, s style) {
	text := commas(n)
	t.pad(c.width - len(text))
	part := share(n, c.total)
	if s == plain && c.total > 0 {
		switch p := float64(n) / float64(c.total); {
		case p >= 0.1:
			s = hot
		case p >= 0.02:
			s = warm
		}
	}
	t.put(s, text)
	t.pad(shareWidth - len(part))
	t.put(s, part)
}

// name prints the rest of a line: the number of calls, the name and the location. A location that
// does not fit is on the next line.
func (t *listing) name(n uint32, calls int64, mark string, approximate bool, s style) {
	g := t.g
	indent := len(mark)
	if t.calls > 0 {
		text := commas(calls)
		if calls == 0 {
			text = "-"
		}
		t.pad(t.calls - len(text))
		t.b = append(append(t.b, text...), "  "...)
		indent += t.calls + 2
	}
	t.b = append(t.b, mark...)
	for i := range t.columns {
		indent += t.columns[i].width + shareWidth + 2
	}
	name := string(escape.AppendText(nil, g.titleInCycle(n), ""))
	if approximate {
		name = "~" + name
		t.marked = true
	}
	t.put(s, name)
	if at := g.location(n); at != "" {
		if at = string(escape.AppendText(nil, at, "")); indent+utf8.RuneCountInString(name)+2+utf8.RuneCountInString(at) > tableWidth {
			t.b = append(t.b, '\n')
			t.pad(max(4, min(indent, tableWidth-utf8.RuneCountInString(at))))
		} else {
			t.b = append(t.b, "  "...)
		}
		t.put(faint, at)
	}
	t.b = append(t.b, '\n')
}

// title returns the name of a function for a table.
func (g *graph) title(n uint32) string {
	name := g.m.r.Text(g.all[n].fn)
	if report.IsMangled(name) && g.s.o.Symbolizer != nil {
		bare, suffix := cutSuffix(name)
		return g.s.o.Symbolizer.Demangle(bare) + suffix
	}
	if name == "" {
		return unknown
	}
	return name
}

// titleInCycle returns the title of a function with its cycle, as in KCachegrind and gprof.
func (g *graph) titleInCycle(n uint32) string {
	title := g.title(n)
	if c := g.cycleNumber(n); c > 0 {
		title += " <cycle " + strconv.FormatUint(uint64(c), 10) + ">"
	}
	return title
}

// location returns the location of a function: file:line [object].
func (g *graph) location(n uint32) string {
	var b []byte
	at := &g.all[n]
	switch {
	case !g.isUnknown(at.file):
		b = append(b, g.s.file(at.file)...)
	case at.line != 0:
		b = append(b, unknown...)
	}
	if at.line != 0 {
		b = strconv.AppendUint(append(b, ':'), uint64(at.line), 10)
	}
	if ob := g.m.r.Text(g.all[n].object); ob != "" && ob != unknown {
		if len(b) > 0 {
			b = append(b, ' ')
		}
		b = append(append(append(b, '['), path.Base(ob)...), ']')
	}
	return string(b)
}

// share returns n as a percentage of total. It returns "" if total is not positive, if n is
// negative, or if n is at least ten times total.
func share(n, total int64) string {
	if total <= 0 || n < 0 || n/10 >= total {
		return ""
	}
	return " " + strconv.FormatFloat(float64(n)*100/float64(total), 'f', 1, 64) + "%"
}

func commas(n int64) string { return wording.Commas(strconv.FormatInt(n, 10)) }

func numberWidth(n int64) int { return len(commas(n)) }
