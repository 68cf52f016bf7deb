package callgrind

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
)

type changeTable struct {
	*listing
	c       *Comparison
	shown   []pair // measures with columns
	sorting []pair
	columns []changeColumn
	called  bool // a side has calls, so inclusive costs may differ from own costs
}

// A pair is one measure for both sides of a comparison. It has two elements, since an event may
// have another index on each side.
type pair [2]measure

// A changeColumn is a column of numbers: a cost, or a change.
type changeColumn struct {
	pair      pair
	inclusive bool
	which     uint8 // costBefore, costAfter or difference
	heading   string
	numbers   int // characters of the widest number
	shares    int // characters of the widest percentage, with the blank before it
}

// Values of changeColumn.which.
const (
	costBefore = iota
	costAfter
	difference
)

// pairs returns a pair for each event in names. An event is given by its name or by a definition.
func (c *Comparison) pairs(names []string) (all []pair, err error) {
	for i, s := range c.sides {
		m, err := s.g.measures(names)
		if err != nil {
			return nil, &EventError{fmt.Errorf("%s: %w", [...]string{"before", "after"}[i], err)}
		}
		all = append(all, make([]pair, len(m)-len(all))...)
		for j := range m {
			all[j][i] = m[j]
		}
	}
	return all, nil
}

// costs returns the costs of a row on both sides. A missing function costs 0.
func (c *Comparison) costs(r *change, p *pair, inclusive bool) (before, after int64) {
	for i, n := range [...]int{r.before, r.after} {
		if n < 0 {
			continue
		}
		g := c.sides[i].g
		costs := g.selfOf(uint32(n))
		if inclusive {
			costs = g.inclOf(uint32(n))
		}
		*([...]*int64{&before, &after}[i]) = p[i].value(costs)
	}
	return before, after
}

// table prints the comparison. common has the names of the events on both sides.
func (c *Comparison) table(common []string) (err error) {
	t := &changeTable{listing: &listing{printer: &c.out, o: &c.o}, c: c}
	names := c.o.Show
	if len(names) == 0 {
		names, t.left = common[:1], common[1:]
	}
	if t.shown, err = c.pairs(names); err != nil {
		return err
	}
	t.sorting = t.shown
	if len(c.o.Sort) > 0 {
		if t.sorting, err = c.pairs(c.o.Sort); err != nil {
			return err
		}
	}
	for _, s := range c.sides {
		t.called = t.called || len(s.g.edges) > 0
	}
	rows, rest := t.choose()
	t.layOut(rows)
	t.heads()
	t.line("total", "", "", func(col *changeColumn) (before, after int64, ok bool) {
		whole := col.inclusive == t.inclusive() // the other column would have the same percentages
		return col.pair[0].value(c.sides[0].g.total), col.pair[1].value(c.sides[1].g.total), whole
	})
	for i := range rows {
		t.row(&rows[i])
		t.send()
	}
	t.b = append(t.b, '\n')
	t.rest(rest, len(c.rows)-len(rows)-rest)
	if c.o.Source && len(t.sorting) > 0 {
		t.sources()
		t.b = append(t.b, '\n')
	}
	c.gate.table(t.listing)
	return nil
}

func (t *changeTable) inclusive() bool { return t.o.Inclusive && t.called }

// choose returns the rows to show, largest changes first, and the number of rows with smaller
// changes.
func (t *changeTable) choose() (rows []change, rest int) {
	type weighed struct {
		change
		by []uint64
	}
	var all []weighed
	base := 0.0 // sum of the changes of own costs
	for i := range t.c.rows {
		w := weighed{change: t.c.rows[i]}
		some := false
		for j := range t.sorting {
			for _, inclusive := range []bool{t.inclusive(), !t.inclusive()} {
				before, after := t.c.costs(&w.change, &t.sorting[j], inclusive)
				w.by = append(w.by, distance(before, after))
				some = some || before != after
				if j == 0 && !inclusive {
					base += float64(distance(before, after))
				}
			}
		}
		if some {
			all = append(all, w)
		}
	}
	slices.SortFunc(all, func(a, b weighed) int {
		return cmp.Or(-slices.Compare(a.by, b.by), strings.Compare(a.key.name, b.key.name), strings.Compare(a.key.object, b.key.object), strings.Compare(a.key.file, b.key.file))
	})
	threshold := cmp.Or(t.o.Threshold, defaultThreshold)
	sum := 0.0
	for i := range all {
		size := float64(all[i].by[0])
		enough := sum*100 >= base*threshold
		if t.inclusive() {
			enough = size*100 < base*(100-threshold)
		}
		if i > 0 && threshold < 100 && enough {
			return rows, len(all) - i
		}
		sum += size
		rows = append(rows, all[i].change)
	}
	return rows, 0
}

// layOut makes the columns, as wide as the numbers in the rows.
func (t *changeTable) layOut(rows []change) {
	for _, p := range t.shown {
		add := func(inclusive bool, which uint8, heading string) {
			col := changeColumn{pair: p, inclusive: inclusive, which: which, heading: heading}
			note := func(before, after int64) {
				number, share := col.text(before, after)
				col.numbers, col.shares = max(col.numbers, len(number)), max(col.shares, len(share))
			}
			note(p[0].value(t.c.sides[0].g.total), p[1].value(t.c.sides[1].g.total))
			for j := range rows {
				note(t.c.costs(&rows[j], &p, inclusive))
			}
			t.columns = append(t.columns, col)
		}
		kinds := [...]string{"self", "incl"}
		first, second := kinds[0], kinds[1]
		if t.inclusive() {
			first, second = second, first
		}
		name := p[1].name
		add(t.inclusive(), costBefore, name+" "+first+" before")
		add(t.inclusive(), costAfter, "after")
		add(t.inclusive(), difference, "change")
		if t.called {
			add(!t.inclusive(), difference, second+" change")
		}
	}
}

// text returns the number in a column and the percentage after it.
func (col *changeColumn) text(before, after int64) (number, share string) {
	switch col.which {
	case costBefore:
		return commas(before), ""
	case costAfter:
		return commas(after), ""
	}
	switch difference := distance(before, after); {
	case difference == 0:
		return "0", ""
	case difference > math.MaxInt64:
		number = "more than " + commas(math.MaxInt64)
	case after > before:
		number = "+" + commas(int64(difference))
	default:
		number = "-" + commas(int64(difference))
	}
	if before != 0 {
		share = " " + percent(before, after, 1)
	}
	return number, share
}

func (t *changeTable) heads() {
	line := func(name, value string) {
		t.put(faint, name)
		t.pad(max(1, 10-len(name)))
		t.b = append(escape.AppendText(t.b, value, ""), '\n')
	}
	a, b := t.c.Before, t.c.After
	line("Before", a.describe())
	line("After", b.describe())
	if x, y := a.m.head.command, b.m.head.command; calledAs(x) == calledAs(y) {
		if y != "" {
			line("Command", calledAs(y))
		}
	} else {
		line("Command", calledAs(x)+" before, "+calledAs(y)+" after")
	}
	if len(t.left) > 0 {
		line("Also", strings.Join(t.left, ", ")+"  (--show="+t.left[0]+",… shows them)")
	}
	t.b = append(t.b, '\n')
	for i := range t.columns {
		col := &t.columns[i]
		text := string(escape.AppendText(nil, col.heading, ""))
		t.pad(col.width() - utf8.RuneCountInString(text))
		t.put(bold, text)
		t.b = append(t.b, "  "...)
	}
	t.put(bold, "function")
	t.put(faint, "  file:line [object]")
	t.b = append(t.b, '\n')
}

func (col *changeColumn) width() int {
	return max(col.numbers+col.shares, utf8.RuneCountInString(col.heading))
}

func (t *changeTable) row(r *change) {
	side, n := t.c.sides[1], r.after
	if n < 0 {
		side, n = t.c.sides[0], r.before
	}
	name := r.key.name
	if name == "" {
		name = unknown
	}
	if side.g.approximate[n] {
		name, t.marked = "~"+name, true
	}
	at := side.g.location(uint32(n))
	if name == nameless {
		at = at[max(0, strings.LastIndexByte(at, '[')):]
	}
	t.line(name, at, t.c.note(r), func(col *changeColumn) (before, after int64, ok bool) {
		before, after = t.c.costs(r, &col.pair, col.inclusive)
		return before, after, true
	})
}

// note returns a remark on a function that is only on one side, or has other compiler clones.
func (c *Comparison) note(r *change) string {
	switch {
	case r.before < 0:
		return "(new)"
	case r.after < 0:
		return "(gone)"
	}
	x, y := cloneKinds(c.sides[0].clones[uint32(r.before)]), cloneKinds(c.sides[1].clones[uint32(r.after)])
	switch {
	case x == y:
		return ""
	case x == "":
		return "(was not " + y + ")"
	default:
		return "(was " + x + ")"
	}
}

// cloneKinds returns the suffixes of clones without their numbers, sorted.
func cloneKinds(suffixes []string) string {
	var all []string
	for _, s := range suffixes {
		for word := range strings.SplitSeq(s, ".") {
			if strings.Trim(word, "0123456789") != "" {
				all = append(all, "."+word)
			}
		}
	}
	slices.Sort(all)
	return strings.Join(slices.Compact(all), " ")
}

// line prints the numbers, the name, the location and the note of a row. The location and the
// note are on the next line if they do not fit. costs returns the costs for a column, and
// whether the column is filled.
func (t *changeTable) line(name, location, note string, costs func(*changeColumn) (before, after int64, ok bool)) {
	indent := 0
	for i := range t.columns {
		col := &t.columns[i]
		indent += col.width() + 2
		before, after, ok := costs(col)
		if !ok {
			t.pad(col.width() + 2)
			continue
		}
		t.cell(col, before, after)
	}
	name = string(escape.AppendText(nil, name, ""))
	t.put(bold, name)
	at := string(escape.AppendText(nil, strings.TrimSpace(location+"  "+note), ""))
	if at != "" {
		if n := utf8.RuneCountInString(at); indent+utf8.RuneCountInString(name)+2+n > tableWidth {
			t.b = append(t.b, '\n')
			t.pad(max(4, min(indent, tableWidth-n)))
		} else {
			t.b = append(t.b, "  "...)
		}
		t.put(faint, at)
	}
	t.b = append(t.b, '\n')
}

func (t *changeTable) cell(col *changeColumn, before, after int64) {
	number, share := col.text(before, after)
	t.pad(col.width() - col.shares - len(number))
	s := plain
	if col.which == difference && after > before {
		s = hot
	} else if col.which == difference && after < before {
		s = good
	}
	t.put(s, number)
	t.pad(col.shares - len(share))
	t.put(s, share)
	t.b = append(t.b, "  "...)
}

// rest prints the numbers of functions that the table leaves out, because of a smaller change or no
// change. If the table has the mark ~, rest explains it.
func (t *changeTable) rest(smaller, same int) {
	if smaller > 0 {
		t.put(faint, "and "+functions(int64(smaller))+" with smaller changes (--threshold=100 shows all)\n")
	}
	if same > 0 {
		t.put(faint, functions(int64(same))+" without a change\n")
	}
	if t.marked {
		t.put(faint, "~ approximate: tail calls in stripped code are not fully recorded\n")
	}
}
