package callgrind

import (
	"fmt"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/stacks"
)

// guess is the note that stacks are partly guessed: a profile has only calls between two functions.
const guess = "self costs and calls are exact; each chain of three or more functions is one of several possible chains"

func (o Output) isStacked() bool { return o == Pprof || o == Folded || o == Speedscope }

func (r *Report) stacks(v *resolution) error {
	measures, err := r.stackMeasures(v)
	if err != nil {
		return err
	}
	s, loss := r.decompose(v, measures, r.o.Output)
	s.comment(&r.m.head, loss)
	switch r.o.Output {
	case Folded:
		r.o.report().Report(guess)
		return s.p.WriteFolded(r.out.w, 0)
	case Speedscope:
		r.reportNegative(s.p)
		return s.p.WriteSpeedscope(r.out.w, r.label()+": "+guess)
	}
	return s.p.WritePprof(r.out.w)
}

// A detail decides which places have separate locations in stacks.
type detail uint8

const (
	byAddress  detail = iota
	byLine            // places on one line share a location
	byFunction        // places in one function share a location
)

// decompose makes the stacks of the profile for an output, in as much detail as memory allows.
func (r *Report) decompose(v *resolution, measures []measure, output Output) (*stacker, stacks.Loss) {
	spare := r.reader.share.Budget.Most() / 16
	d := byAddress
	if !r.reader.share.Take(int64(len(r.m.costs.keys))*placeStackCost+int64(len(r.m.calls.keys))*callStackCost, spare) {
		d = byFunction
	}
	frames := maxFrames
	for ; frames > minFrames && !r.reader.share.Take(int64(frames)*frameCost, 0); frames /= 2 {
	}
	for ; ; d++ {
		s := newStacker(v, measures, d)
		g := s.graph()
		if output == Folded { // each line repeats names
			g.Weights = s.p.FoldedWeight()
		}
		loss := stacks.Decompose(s.p, g, s.costs, frames)
		whole := !slices.ContainsFunc(loss.Unplaced, func(n int64) bool { return n != 0 })
		if !whole && d < byFunction {
			continue
		}
		switch d {
		case byLine:
			r.o.report().Report("the stacks have no addresses, for lack of memory (--max-memory)")
		case byFunction:
			r.o.report().Report("the stacks have neither lines nor addresses, for lack of memory (--max-memory)")
		}
		for i, n := range loss.Unplaced {
			if n != 0 {
				r.o.report().Report(fmt.Sprintf("costs of %d %s have no callers in the output: the calls are too many or too deep for the memory allowed (--max-memory)", n, s.p.Values[i].Name))
			}
		}
		return s, loss
	}
}

// stacks prints the stacks of both profiles. common has the names of the events on both sides.
func (c *Comparison) stacks(found []*resolution, common []string) error {
	if len(c.o.Show) > 0 {
		common = c.o.Show
	}
	if c.o.Output == Folded {
		if len(c.o.Show) > 1 {
			return errFolded(c.o.Show)
		}
		common = common[:1]
	}
	var sides [2]*stacks.Profile
	for i, r := range []*Report{c.Before, c.After} {
		measures, err := found[i].measures(common)
		if err != nil {
			return err
		}
		s, loss := r.decompose(found[i], measures, c.o.Output)
		s.comment(&r.m.head, loss)
		sides[i] = s.p
	}
	if c.o.Output == Folded {
		c.o.report().Report(guess)
		return stacks.WriteFoldedPair(c.out.w, sides[0], sides[1], 0)
	}
	return stacks.Difference(sides[0], sides[1]).WritePprof(c.out.w)
}

func errFolded(events []string) error {
	return &EventError{fmt.Errorf("folded stacks can have only one event, but %s names %d", strings.Join(events, ","), len(events))}
}

// reportNegative reports negative costs, which speedscope rejects.
func (r *Report) reportNegative(p *stacks.Profile) {
	for i, v := range p.Values {
		sum := int64(0)
		for j := range p.Samples {
			sum = stacks.Plus(sum, min(0, p.Samples[j].Values[i]))
		}
		if sum < 0 {
			r.o.report().Report(fmt.Sprintf("stacks with negative costs are left out, because speedscope refuses them: %d %s", sum, v.Name))
		}
	}
}

// stackMeasures returns the measures of the stacks: the events of Options.Show, or else all counted
// events. Folded stacks have only one measure, by default the first event with costs.
func (r *Report) stackMeasures(v *resolution) ([]measure, error) {
	if len(r.o.Show) == 0 {
		all := counted(r.reader.Events())
		if r.o.Output == Folded {
			i := max(0, slices.IndexFunc(r.m.sums.total, func(n int64) bool { return n != 0 }))
			all = all[i:][:1]
		}
		return all, nil
	}
	all, err := v.measures(r.o.Show)
	if err == nil && r.o.Output == Folded && len(all) > 1 {
		err = errFolded(r.o.Show)
	}
	return all, err
}

// stackValue returns the name and unit under which stacks show an event. scale is the factor from
// the event's costs to this unit. Some producers write the unit after the event's name, as in
// Time_(10ns) by Xdebug and cpu(nanoseconds) by pprof.
func stackValue(event string) (v stacks.ValueType, scale int64) {
	if name, unit, ok := strings.Cut(strings.TrimSuffix(event, ")"), "("); ok && strings.HasSuffix(event, ")") {
		name = strings.TrimRight(name, "_")
		for _, u := range stackUnits {
			if name != "" && slices.Contains(u.names, unit) {
				return stacks.ValueType{Name: name, Unit: u.unit}, u.scale
			}
		}
	}
	return stacks.ValueType{Name: event, Unit: "count"}, 1
}

// stackUnits lists the units that producers write after event names, and for each the unit
// used in stacks and the factor to it.
var stackUnits = []struct {
	names []string
	unit  string
	scale int64
}{
	{[]string{"10ns"}, "nanoseconds", 10},
	{[]string{"ns", "nanoseconds"}, "nanoseconds", 1},
	{[]string{"us", "µs", "microseconds"}, "nanoseconds", 1000},
	{[]string{"ms", "milliseconds"}, "nanoseconds", 1_000_000},
	{[]string{"s", "seconds"}, "nanoseconds", 1_000_000_000},
	{[]string{"B", "bytes"}, "bytes", 1},
	{[]string{"count"}, "count", 1},
}
