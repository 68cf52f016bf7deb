package callgrind

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/report"
)

// A Comparison compares two profiles, each of one or several inputs, and prints how the costs
// changed. One goroutine at a time may use it.
type Comparison struct {
	// Before and After sum the inputs of each side, and print nothing. Report.Begin begins an
	// input. The Comparison closes both.
	Before, After *Report

	o     Options
	out   printer
	gate  gate
	sides []*side
	rows  []change
}

// A change is a row of a comparison: a function with its node on each side.
type change struct {
	key           functionKey
	before, after int // node of the side's graph; -1 if missing
}

// NewComparison returns a Comparison whose Close prints to w, in the form of Options.Output: Table,
// JSON, Pprof or Folded. Pprof has the stacks of After, and the stacks of Before with negated
// costs. Folded has two costs for each stack.
func NewComparison(w io.Writer, o Options) *Comparison {
	c := &Comparison{out: printer{w: w, members: o.Members}}
	o.Diagnose = (&report.Once{To: o.Diagnose}).Report // reports each diagnostic once
	c.o = o
	o.Output, o.Foreign = Table, nil
	c.Before, c.After = NewReport(io.Discard, o), NewReport(io.Discard, o)
	c.Before.m.stacked, c.After.m.stacked = c.o.Output.isStacked(), c.o.Output.isStacked()
	return c
}

// Failed reports, after Close, whether a limit does not hold, or a profile was cut or has no costs.
func (c *Comparison) Failed() bool { return c.gate.failed }

// Close prints the comparison. It does not close the writer. It returns the first error of reading,
// of the writer, or of the options: an [EventError], a [PartError] or [ErrMemory].
func (c *Comparison) Close() error {
	defer c.Before.reader.share.Release()
	defer c.After.reader.share.Release()
	err := cmp.Or(c.Before.endReading(), c.After.endReading())
	if !c.comparable() {
		return cmp.Or(err, c.Before.failed, c.After.failed)
	}
	var found []*resolution
	for _, r := range []*Report{c.Before, c.After} {
		found = append(found, r.resolved())
	}
	failed := c.compare(found)
	c.out.flush()
	for i, r := range []*Report{c.Before, c.After} {
		r.account(found[i])
	}
	return cmp.Or(err, failed, c.out.err)
}

// comparable reports whether both sides have costs. If a side has no costs or was cut, the
// comparison fails.
func (c *Comparison) comparable() bool {
	ok := true
	for i, r := range []*Report{c.Before, c.After} {
		side := [...]string{"before", "after"}[i]
		switch {
		case r.chosen.missing(&r.failed):
			r.failed = &PartError{fmt.Errorf("%s: %w", side, r.failed)}
			ok = false
		case r.m.head.parts == 0 || len(r.reader.Events()) == 0:
			c.o.report().Report(fmt.Sprintf("the %s profile has no costs, so nothing is compared", [...]string{"OLD", "NEW"}[i]))
			c.gate.failed, ok = true, false
		}
		c.gate.incomplete(r, "--diff")
	}
	return ok
}

func (c *Comparison) compare(found []*resolution) (err error) {
	if c.sides, err = joinSides(found...); err != nil {
		return err
	}
	c.match()
	c.reportDifferences()
	common, err := c.common()
	if err != nil {
		return err
	}
	if err := c.gate.judge(c.o.Limits, c.sides); err != nil {
		return err
	}
	switch {
	case c.o.Output.isStacked():
		return c.stacks(found, common)
	case c.o.Output == JSON:
		c.json()
		return nil
	}
	return c.table(common)
}

// match pairs the functions of both sides.
func (c *Comparison) match() {
	a, b := c.sides[0], c.sides[1]
	for i, key := range a.keys {
		r := change{key, i, -1}
		if j, ok := b.index[key]; ok && b.g.isPresent(j) {
			r.after = int(j)
		}
		if a.g.isPresent(uint32(i)) {
			c.rows = append(c.rows, r)
		}
	}
	for j, key := range b.keys {
		if i, ok := a.index[key]; (!ok || !a.g.isPresent(i)) && b.g.isPresent(uint32(j)) {
			c.rows = append(c.rows, change{key, -1, j})
		}
	}
}

// common returns the names of the events on both sides, events with costs first.
func (c *Comparison) common() (names []string, err error) {
	a, b := c.Before, c.After
	var idle []string
	for i, e := range a.reader.Events() {
		if j := slices.IndexFunc(b.reader.Events(), func(o eventType) bool { return o.Name == e.Name }); j < 0 {
			continue
		} else if a.m.sums.total[i] == 0 && b.m.sums.total[j] == 0 {
			idle = append(idle, e.Name)
			continue
		}
		names = append(names, e.Name)
	}
	if names = append(names, idle...); len(names) == 0 {
		err = &EventError{fmt.Errorf("the profiles have no event in common: %s before, %s after", a.reader.ev.list(), b.reader.ev.list())}
	}
	return names, err
}

// reportDifferences reports why the profiles may not be comparable: different events, caches or
// commands.
func (c *Comparison) reportDifferences() {
	a, b := c.Before, c.After
	only := func(x, y *Report) string {
		var names []string
		for _, e := range x.reader.Events() {
			if !slices.ContainsFunc(y.reader.Events(), func(o eventType) bool { return o.Name == e.Name }) {
				names = append(names, e.Name)
			}
		}
		return strings.Join(names, ", ")
	}
	for _, d := range []struct{ names, side string }{{only(a, b), "OLD"}, {only(b, a), "NEW"}} {
		if d.names != "" {
			c.o.report().Report(fmt.Sprintf("only the %s profile counts %s, so these costs cannot be compared", d.side, d.names))
		}
	}
	caches := func(r *Report) (all []string) {
		for _, d := range r.m.head.descriptions {
			if name, value, _ := strings.Cut(d, ":"); strings.HasSuffix(name, "cache") && strings.TrimSpace(value) != "" {
				all = append(all, name+": "+strings.TrimSpace(value))
			}
		}
		slices.Sort(all)
		return slices.Compact(all)
	}
	if x, y := caches(a), caches(b); !slices.Equal(x, y) {
		c.o.report().Report(fmt.Sprintf("the caches differ, so the misses differ, too: %s before, %s after", orNone(x), orNone(y)))
	}
	if x, y := calledAs(a.m.head.command), calledAs(b.m.head.command); x != y && x != "" && y != "" {
		c.o.report().Report(fmt.Sprintf("the commands differ: %s before, %s after", x, y))
	}
}

func orNone(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, "; ")
}

// calledAs returns a command without the folders of its program.
func calledAs(command string) string {
	program, arguments, spaced := strings.Cut(command, " ")
	program = baseOf(program)
	if spaced {
		program += " " + arguments
	}
	return program
}
