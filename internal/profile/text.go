package profile

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/stacks"
	"github.com/symfilter/symfilter/internal/wording"
)

// Bounds of the lists in the text, as in pprof -top by default.
const (
	maxRows    = 80  // functions
	leastShare = 200 // least share of a listed function: a 200th of the total, 0.5 %
	maxStacks  = 10
	maxFrames  = 64 // frames of a listed stack
)

// A row holds the sums for a line of the table: a function, or all unnamed code of an object file.
type row struct {
	name, file string
	flat, cum  int64
	seen       int // the last sample counted in cum, plus 1
}

// A table adds up the samples of a profile by function.
type table struct {
	p     *stacks.Profile
	value int
	unit  string
	total int64
	rows  []row
	index map[[2]string]int
	of    [][]int // rows of the lines of each location, innermost first
}

// writeText prints one value of the samples: a table of functions, then the largest stacks.
func writeText(w io.Writer, p *stacks.Profile, value int, name string, v View) error {
	t := &table{p: p, value: value, unit: p.Values[value].Unit, index: make(map[[2]string]int), of: make([][]int, len(p.Locations))}
	t.count()
	out := bufio.NewWriter(w)
	t.heading(out, name, v.Label)
	t.functions(out, v.Inclusive)
	t.largest(out)
	return out.Flush()
}

func (t *table) count() {
	wholes := t.p.Wholes()
	for i := range t.p.Locations {
		l := &t.p.Locations[i]
		if len(l.Lines) == 0 {
			t.of[i] = []int{t.row(t.object(l), "")}
		}
		for _, line := range l.Lines {
			name, file := t.object(l), ""
			if line.Function != 0 {
				if f := wholes[line.Function-1]; f.Name != "" {
					name, file = f.Name, f.File
				}
			}
			t.of[i] = append(t.of[i], t.row(name, file))
		}
	}
	for i := range t.p.Samples {
		s := &t.p.Samples[i]
		v := s.Values[t.value]
		t.total = stacks.Plus(t.total, v)
		for n, l := range s.Stack {
			for k, r := range t.of[l-1] {
				row := &t.rows[r]
				if n == 0 && k == 0 {
					row.flat = stacks.Plus(row.flat, v)
				}
				if row.seen != i+1 {
					row.seen = i + 1
					row.cum = stacks.Plus(row.cum, v)
				}
			}
		}
	}
}

// row returns the index of the row with this name and file, added if new.
func (t *table) row(name, file string) int {
	key := [2]string{name, file}
	n, ok := t.index[key]
	if !ok {
		n = len(t.rows)
		t.index[key] = n
		t.rows = append(t.rows, row{name: name, file: file})
	}
	return n
}

// object returns the name for a location without functions: its file, such as [app].
func (t *table) object(l *stacks.Location) string {
	if l.Mapping == 0 {
		return "[unknown]"
	}
	name := path.Base(t.p.Mappings[l.Mapping-1].File)
	if len(name) > 1 && name[0] == '[' {
		return name
	}
	return "[" + name + "]"
}

// heading prints the kind of the profile, the total of the shown value, and the names of the other
// values.
func (t *table) heading(w *bufio.Writer, name, label string) {
	if label != "" {
		name += ": " + label
	}
	line := fmt.Sprintf("%s, %s in %s", t.p.Values[t.value].Name, scaledUnit(t.total, t.unit), wording.Count(int64(len(t.p.Samples)), "sample", "samples"))
	if every := t.p.Period; every > 1 && scaledUnit(every, t.p.PeriodType.Unit) != strconv.FormatInt(every, 10) {
		line += ", one every " + scaledUnit(every, t.p.PeriodType.Unit)
	}
	if len(t.p.Values) > 1 {
		var others []string
		for i, o := range t.p.Values {
			if i != t.value {
				others = append(others, o.Name)
			}
		}
		line += "; --show also accepts " + listed(others)
	}
	w.Write(append(escape.AppendText(nil, name, ""), '\n'))
	w.Write(append(escape.AppendText(nil, line, ""), '\n', '\n'))
}

func (t *table) functions(w *bufio.Writer, inclusive bool) {
	order := make([]int, len(t.rows))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		x, y := &t.rows[a], &t.rows[b]
		flat, cum := cmp.Compare(magnitude(y.flat), magnitude(x.flat)), cmp.Compare(magnitude(y.cum), magnitude(x.cum))
		if inclusive {
			flat, cum = cum, flat
		}
		return cmp.Or(flat, cum, cmp.Compare(x.name, y.name), cmp.Compare(x.file, y.file))
	})
	least := magnitude(t.total) / leastShare
	listed, rest, sum := 0, 0, int64(0)
	fmt.Fprintf(w, "%12s %6s %6s %12s %6s  function\n", "flat", "flat%", "sum%", "cum", "cum%")
	for _, i := range order {
		r := &t.rows[i]
		if r.cum == 0 && r.flat == 0 {
			continue
		}
		if listed == maxRows || magnitude(r.cum) < least {
			rest++
			continue
		}
		listed++
		sum = stacks.Plus(sum, r.flat)
		fmt.Fprintf(w, "%12s %6s %6s %12s %6s  ", scaledUnit(r.flat, t.unit), t.percent(r.flat), t.percent(sum), scaledUnit(r.cum, t.unit), t.percent(r.cum))
		line := escape.AppendText(nil, r.name, "")
		if r.file != "" {
			line = escape.AppendText(append(line, "  "...), r.file, "")
		}
		w.Write(append(line, '\n'))
	}
	if rest > 0 {
		fmt.Fprintf(w, "and %s\n", wording.Count(int64(rest), "more function", "more functions"))
	}
}

// largest prints the stacks with the largest values.
func (t *table) largest(w *bufio.Writer) {
	type group struct {
		sample int // index of the first sample of the group
		value  int64
		leaf   int64 // line of the leaf; 0 if the samples differ in it
	}
	var groups []group
	index := make(map[string]int)
	var key []byte
	for i := range t.p.Samples {
		s := &t.p.Samples[i]
		if s.Values[t.value] == 0 {
			continue
		}
		var leaf int64
		key, leaf = t.key(key[:0], s.Stack)
		n, ok := index[string(key)]
		if !ok {
			n = len(groups)
			index[string(key)] = n
			groups = append(groups, group{sample: i, leaf: leaf})
		}
		if g := &groups[n]; g.leaf != leaf {
			g.leaf = 0
		}
		groups[n].value = stacks.Plus(groups[n].value, s.Values[t.value])
	}
	slices.SortStableFunc(groups, func(a, b group) int { return cmp.Compare(magnitude(b.value), magnitude(a.value)) })
	if len(groups) == 0 {
		return
	}
	if len(groups) > maxStacks {
		fmt.Fprintf(w, "\n%d of %s, the largest first\n", maxStacks, wording.Count(int64(len(groups)), "stack", "stacks"))
	} else {
		fmt.Fprintf(w, "\n%s, the largest first\n", wording.Count(int64(len(groups)), "stack", "stacks"))
	}
	for _, g := range groups[:min(len(groups), maxStacks)] {
		fmt.Fprintf(w, "%12s %6s\n", scaledUnit(g.value, t.unit), t.percent(g.value))
		frames := 0
		for _, n := range t.p.Samples[g.sample].Stack {
			l := &t.p.Locations[n-1]
			for k := range max(1, len(l.Lines)) {
				if frames++; frames <= maxFrames {
					w.Write(append(t.frame(append([]byte(nil), "                     "...), l, k, frames > 1 || g.leaf != 0), '\n'))
				}
			}
		}
		if frames > maxFrames {
			fmt.Fprintf(w, "                     %d more frames\n", frames-maxFrames)
		}
	}
}

// key appends the functions and lines of a stack, except the leaf's line, which it returns.
// Samples with equal keys are one stack in the list.
func (t *table) key(b []byte, stack []uint32) (_ []byte, leaf int64) {
	for i, n := range stack {
		l := &t.p.Locations[n-1]
		if len(l.Lines) == 0 {
			b = append(strconv.AppendUint(append(b, ' '), uint64(n), 36), '?')
		}
		for k, line := range l.Lines {
			b = strconv.AppendUint(append(b, ' '), uint64(line.Function), 36)
			if i == 0 && k == 0 {
				leaf = line.Line
				continue
			}
			b = strconv.AppendInt(append(b, ':'), line.Line, 36)
		}
	}
	return b, leaf
}

// frame appends the function and file of line k of a location. If lined is set, it also appends the
// number of the source line.
func (t *table) frame(b []byte, l *stacks.Location, k int, lined bool) []byte {
	if k >= len(l.Lines) || l.Lines[k].Function == 0 || t.p.Functions[l.Lines[k].Function-1].Name == "" {
		where := "0x" + strconv.FormatUint(l.Address, 16)
		if l.Mapping != 0 {
			if m := &t.p.Mappings[l.Mapping-1]; m.File != "" && l.Address >= m.Start {
				where = m.File + "+0x" + strconv.FormatUint(l.Address-m.Start+m.Offset, 16)
			}
		}
		return escape.AppendText(b, where, "")
	}
	line := &l.Lines[k]
	f := &t.p.Functions[line.Function-1]
	b = escape.AppendText(b, f.Name, "")
	if f.File != "" {
		b = escape.AppendText(append(b, " at "...), f.File, "")
		if line.Line > 0 && lined {
			b = strconv.AppendInt(append(b, ':'), line.Line, 10)
		}
	}
	if k < len(l.Lines)-1 {
		b = append(b, " (inlined)"...)
	}
	return b
}

// percent returns n as a percentage of the total, or "-" if the total is 0.
func (t *table) percent(n int64) string {
	if t.total == 0 {
		return "-"
	}
	return strconv.FormatFloat(100*float64(n)/float64(t.total), 'f', 1, 64) + "%"
}

// magnitude returns the absolute value of n, at most math.MaxInt64.
func magnitude(n int64) int64 {
	if n < 0 {
		return -max(n, -math.MaxInt64)
	}
	return n
}

// scaledUnit returns a value with its unit, as pprof does: 1.50MB, 2.31s. 0 and values of other
// units have no unit.
func scaledUnit(n int64, unit string) string {
	type step struct {
		name string
		size float64
	}
	var steps []step
	switch unit {
	case "bytes", "byte":
		steps = []step{{"B", 1}, {"kB", 1 << 10}, {"MB", 1 << 20}, {"GB", 1 << 30}, {"TB", 1 << 40}}
	case "nanoseconds", "nanosecond", "ns":
		steps = []step{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}
	case "microseconds", "us":
		steps = []step{{"us", 1}, {"ms", 1e3}, {"s", 1e6}}
	}
	if n == 0 || len(steps) == 0 {
		return strconv.FormatInt(n, 10)
	}
	s := steps[0]
	for _, next := range steps[1:] {
		if math.Abs(float64(n)) >= next.size {
			s = next
		}
	}
	if s.size == 1 {
		return strconv.FormatInt(n, 10) + s.name
	}
	return strings.TrimSuffix(strconv.FormatFloat(float64(n)/s.size, 'f', 2, 64), ".00") + s.name
}
