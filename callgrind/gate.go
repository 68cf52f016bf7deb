package callgrind

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/demangle"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/stacks"
)

// A verdict is the result of checking a limit.
type verdict struct {
	limit         *Limit
	before, after int64 // before is 0 for a single profile
	missing       string
	holds         bool
}

// A gate decides whether a report has failed.
type gate struct {
	verdicts []verdict
	failed   bool
}

// Failed reports, after Close, whether a limit does not hold. With limits, a report also fails if
// its profile was cut or has no costs.
func (r *Report) Failed() bool { return r.gate.failed }

// checkLimits checks the limits of a report. It prints the verdicts after a table or JSON, and
// otherwise reports them as diagnostics. v is nil if the profile has no costs.
func (r *Report) checkLimits(v *resolution) {
	if len(r.o.Limits) == 0 || r.failed != nil {
		return
	}
	r.gate.incomplete(r, "--limit")
	if v == nil {
		r.gate.failed = true
		r.o.report().Report("the profile has no costs to check, so --limit fails")
		return
	}
	sides, err := joinSides(v)
	if err == nil {
		err = r.gate.judge(r.o.Limits, sides)
	}
	switch {
	case err != nil:
		r.failed = err
	case r.o.Output == JSON:
		r.gate.json(&r.out, false)
	case r.o.Output == Table:
		r.gate.table(&listing{printer: &r.out, o: r.o})
	default:
		for _, line := range r.gate.lines() {
			r.o.report().Report(line)
		}
	}
}

// incomplete fails the gate if an input of a report was cut. flag is the flag that the diagnostic
// names.
func (g *gate) incomplete(r *Report, flag string) {
	if len(r.in.cut) == 0 {
		return
	}
	g.failed = true
	names := r.in.cut
	const most = 3
	if n := len(names) - most; n > 0 {
		names = append(slices.Clone(names[:most]), strconv.Itoa(n)+" more")
	}
	r.o.report().Report(fmt.Sprintf("%s fails, because the end of %s is missing, and the costs are incomplete", flag, strings.Join(names, ", ")))
}

// judge checks limits, and adds the verdicts to g. With two sides, it checks the costs of the
// second side, and changes relative to the first side.
func (g *gate) judge(limits []Limit, sides []*side) error {
	for i := range limits {
		l := &limits[i]
		v := verdict{limit: l}
		var names map[string]bool
		if l.function != "" {
			names, v.missing = namesOf(l.function, sides)
		}
		found := v.missing == ""
		if l.object != "" {
			found = false
			v.missing = "no such object"
		}
		isProgram := slices.ContainsFunc(sides, func(s *side) bool { return l.object == s.program })
		for j, s := range sides {
			m, err := s.g.measures([]string{l.event})
			if err != nil {
				return err
			}
			n, has := s.costOf(l, names, isProgram, &m[0])
			if found = found || has; j == len(sides)-1 {
				v.after = n
			} else {
				v.before = n
			}
		}
		if found {
			v.missing = ""
		}
		v.holds = found && l.holds(v.before, v.after)
		g.failed = g.failed || !v.holds
		g.verdicts = append(g.verdicts, v)
	}
	return nil
}

// namesOf returns the demangled names of a limit's function. function may be a demangled name, a
// linkage name, or a unique name without arguments. If no function, or more than one, has the name
// without arguments, missing is the reason.
func namesOf(function string, sides []*side) (names map[string]bool, missing string) {
	names, near := make(map[string]bool), make(map[string]bool)
	link, _ := report.Unversioned(function)
	link = report.WithoutCloneSuffix(link)
	closed := report.Closed(function)
	if report.IsMangled(link) {
		closed = report.Closed(demangle.GNU(link))
	}
	for _, s := range sides {
		linked := s.links[link]
		for _, k := range s.keys {
			switch {
			case k.name == closed || k.name == linked && linked != "":
				names[k.name] = true
			case strings.HasPrefix(k.name, closed) && k.name[len(closed)] == '(':
				near[k.name] = true
			}
		}
	}
	switch {
	case len(names) > 0:
		return names, ""
	case len(near) == 1:
		return near, ""
	case len(near) > 1:
		const most = 3
		all := slices.Sorted(maps.Keys(near))
		if len(all) > most {
			all = append(all[:most], "…")
		}
		return nil, "several such functions: " + strings.Join(all, ", ")
	}
	return nil, "no such function"
}

// costOf returns the cost to which a limit applies. found is false if the limit's function or
// object is missing. names are the function's names. isProgram is set if the object is the program
// of one side; the program may have another name on this side.
func (s *side) costOf(l *Limit, names map[string]bool, isProgram bool, m *measure) (n int64, found bool) {
	if l.function == "" && l.object == "" {
		return m.value(s.g.total), true
	}
	for i, k := range s.keys {
		if !s.g.isPresent(uint32(i)) {
			continue
		}
		if l.object != "" {
			object := baseOf(s.g.m.r.Text(s.g.all[i].object))
			if object == l.object || k.object != "" && k.object == withoutVersion(l.object) || isProgram && object == s.program {
				n, found = stacks.Plus(n, m.value(s.g.selfOf(uint32(i)))), true
			}
			continue
		}
		if names[k.name] {
			found = true
			if l.self {
				n = stacks.Plus(n, m.value(s.g.selfOf(uint32(i))))
			} else {
				n = stacks.Plus(n, m.value(s.g.inclOf(uint32(i))))
			}
		}
	}
	return n, found
}

// value returns the cost of a verdict as text: a count, or a change in percent. If the cost is
// missing, it returns the reason.
func (v *verdict) value() string {
	switch {
	case v.missing != "":
		return v.missing
	case !v.limit.relative:
		return commas(v.after)
	case v.before == 0:
		return "0 to " + commas(v.after)
	}
	text := percent(v.before, v.after, 1)
	// more decimal places, if rounding moves a change across the bound
	for places := 2; places <= maxPlaces; places++ {
		f, err := strconv.ParseFloat(strings.TrimSuffix(text, "%"), 64)
		scale := 1.0
		for range v.limit.places {
			scale *= 10
		}
		if err != nil || (f <= float64(v.limit.bound)/scale) == v.holds {
			break
		}
		text = percent(v.before, v.after, places)
	}
	return text
}

// percent returns a change in percent, with its sign. The cost before must not be 0.
func percent(before, after int64, places int) string {
	change := (float64(after) - float64(before)) * 100 / float64(distance(0, before))
	text := strconv.FormatFloat(change, 'f', places, 64)
	if change > 0 {
		text = "+" + text
	}
	return text + "%"
}

func (v *verdict) word() string {
	if v.missing != "" {
		return "fails"
	}
	if v.holds {
		return "holds"
	}
	return "exceeded"
}

func (g *gate) lines() (all []string) {
	wide, wider := 0, 0
	for i := range g.verdicts {
		wide = max(wide, utf8.RuneCountInString(g.verdicts[i].limit.text))
		wider = max(wider, utf8.RuneCountInString(g.verdicts[i].value()))
	}
	for i := range g.verdicts {
		v := &g.verdicts[i]
		all = append(all, fmt.Sprintf("limit %-*s  %-*s  %s", wide, v.limit.text, wider, v.value(), v.word()))
	}
	return all
}

func (g *gate) table(t *listing) {
	for i, line := range g.lines() {
		s := faint
		if !g.verdicts[i].holds {
			s = hot
		}
		t.put(s, string(escape.AppendText(nil, line, "")))
		t.b = append(t.b, '\n')
	}
}

func (g *gate) json(p *printer, compared bool) {
	for i := range g.verdicts {
		v := &g.verdicts[i]
		b := p.object("limit")
		b.String("limit", v.limit.text)
		if v.missing != "" {
			b.String("missing", v.missing)
		} else {
			if compared {
				b.Int("before", v.before)
			}
			b.Int("after", v.after)
		}
		b.Bool("holds", v.holds)
		p.end(b)
	}
}
