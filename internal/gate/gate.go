// Package gate decides whether the findings of a run fail a build. It compares them with a baseline
// or an earlier run, and gives a reason for each failure.
package gate

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/findings"
)

// A Run holds the findings of a run and the result of their comparison with known findings.
type Run struct {
	*findings.Collection

	Against *Comparison                    // nil: all findings are new
	Empty   []string                       // inputs without the report that they should have
	Place   func(*findings.Finding) string // returns the file and line of a finding, or ""
}

const shown = 3 // findings, files or processes that a reason lists

// Reasons returns the reasons why the run fails a gate on kinds, in one readable line for each kind
// of reason. It returns nil if the run passes. Findings that are missing, or that cannot be
// identified, are reasons, too.
func (r *Run) Reasons(kinds *Kinds) (reasons []string) {
	if kinds.None() {
		return nil
	}
	c := r.Against
	if c == nil {
		c = Compare(r.Collection, nil, time.Time{})
	}
	var found, expired, unnamed []Change
	for _, change := range c.New {
		switch x := change.Findings[0]; {
		case !kinds.Has(x):
		case change.Unnamed && r.Against != nil:
			unnamed = append(unnamed, change)
		case !change.Expired.IsZero():
			expired = append(expired, change)
		default:
			found = append(found, change)
		}
	}
	add := func(s string) { reasons = append(reasons, s) }
	if len(found) > 0 {
		is := ""
		if r.Against != nil {
			is = pick(len(found), " is new", " are new")
		}
		add(fmt.Sprintf("%s%s: %s", number(len(found), "finding"), is, r.list(found)))
	}
	if len(expired) > 0 {
		add(fmt.Sprintf("the baseline no longer accepts %s: %s", number(len(expired), "finding"), r.list(expired)))
	}
	if len(unnamed) > 0 {
		add(fmt.Sprintf("%s %s, since no frame of the program has a name: %s; find the debug file of %s", number(len(unnamed), "finding"),
			pick(len(unnamed), "counts as new", "count as new"), r.list(unnamed), objects(unnamed)))
	}
	return append(reasons, r.Missing()...)
}

// Missing returns why the run may lack findings: truncated reports, inputs without a report, and
// findings that were left out.
func (r *Run) Missing() (reasons []string) {
	add := func(s string) { reasons = append(reasons, s) }
	if cut := r.cut(); len(cut) > 0 {
		add(fmt.Sprintf("%s cut off, so errors may be missing: %s", number(len(cut), "report"), list(cut)))
	}
	if len(r.Empty) > 0 {
		add(fmt.Sprintf("%s without a report: %s", number(len(r.Empty), "input"), list(r.Empty)))
	}
	if r.Left > 0 {
		add(fmt.Sprintf("%s left out for lack of memory: raise --max-memory", number(int(r.Left), "finding")))
	}
	return reasons
}

// list describes the first changes, each by its kind, function, file and line, and adds the number
// of further changes. It describes an Unnamed change by its kind only.
func (r *Run) list(changes []Change) string {
	var all []string
	for _, change := range changes[:min(len(changes), shown)] {
		x := change.Findings[0]
		s := x.Kind
		if f := function(x); f != "" && !change.Unnamed {
			s += " in " + f
		}
		if p := r.Place(x); p != "" && !change.Unnamed {
			s += ", " + p
		}
		all = append(all, s)
	}
	s := strings.Join(all, "; ")
	if n := len(changes) - len(all); n > 0 {
		s += fmt.Sprintf("; and %d more", n)
	}
	return s
}

// cut returns the input, command and PID of each process whose reports have no end.
func (r *Run) cut() (all []string) {
	for _, p := range r.Processes() {
		if p.Complete {
			continue
		}
		s := p.Input
		if len(p.Command) > 0 {
			s += ", " + p.Command[0]
		}
		if p.PID != "" {
			s += " (PID " + p.PID + ")"
		}
		all = append(all, s)
	}
	return all
}

// objects lists the object files, with their build IDs, of the frames without a name in the first
// stack of each change. If a finding has an own frame, only its own frames count.
func objects(changes []Change) string {
	var all []string
	for _, change := range changes {
		for _, t := range change.Findings[0].Traces[:min(len(change.Findings[0].Traces), 1)] {
			for _, f := range t.Frames {
				if f.Named() || f.Object == "" || !f.IsOwn && change.Findings[0].OwnFrame() != nil {
					continue
				}
				s := f.Object
				if id := f.ID.String(); id != "" {
					s += " (BuildId: " + id + ")"
				}
				if !slices.Contains(all, s) {
					all = append(all, s)
				}
			}
		}
	}
	if len(all) == 0 {
		return "the program"
	}
	return list(all)
}

// list returns the first names, and the number of further names.
func list(names []string) string {
	s := strings.Join(names[:min(len(names), shown)], ", ")
	if n := len(names) - shown; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

// number returns n with the noun, in the plural unless n is 1.
func number(n int, noun string) string {
	return fmt.Sprintf("%d %s", n, noun+pick(n, "", "s"))
}

func pick(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
