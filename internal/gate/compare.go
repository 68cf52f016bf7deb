package gate

import (
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/findings"
)

// A State is the result of a comparison for one finding.
type State uint8

// The states.
const (
	NotCompared State = iota
	New               // not known before, or expired, or not Identified: see Compare
	Unchanged         // the baseline or the earlier run has it, too
)

// A Comparison is the difference between the findings of a run and the findings known before.
// Findings with equal fingerprints are one change, however often they occur.
type Comparison struct {
	New  []Change // in the order of the findings
	Same int      // number of fingerprints that were known before
	Gone []Entry  // known before, and not found; in the order of the entries

	states map[string]State // by fingerprint
}

// A Change is a fingerprint of new findings: see Compare.
type Change struct {
	Findings []*findings.Finding // at least one
	// last day on which a baseline accepted it; zero if no baseline has it
	Expired time.Time
	Unnamed bool // see [Identified]: it may have been known before
}

// Compare compares the findings of a run with the entries known before. Findings of entries whose
// last day has passed are new, and so are findings that are not [Identified].
func Compare(now *findings.Collection, known []Entry, today time.Time) *Comparison {
	c := &Comparison{states: make(map[string]State)}
	// entries with the run's fingerprints only: a baseline may have many others
	before := make(map[string][]Entry)
	for _, x := range now.All() {
		before[x.Fingerprint] = nil
	}
	for _, e := range known {
		if entries, ok := before[e.Fingerprint]; ok {
			before[e.Fingerprint] = append(entries, e)
		}
	}
	changes := make(map[string]int) // indexes in c.New
	for _, x := range now.All() {
		if i, ok := changes[x.Fingerprint]; ok {
			c.New[i].Findings = append(c.New[i].Findings, x)
			continue
		}
		if c.states[x.Fingerprint] != NotCompared {
			continue
		}
		change := Change{Findings: []*findings.Finding{x}, Unnamed: !Identified(x)}
		for _, e := range before[x.Fingerprint] {
			if !e.expired(today) {
				c.states[x.Fingerprint] = Unchanged
			} else if e.Until.After(change.Expired) {
				change.Expired = e.Until
			}
		}
		if c.states[x.Fingerprint] == Unchanged && !change.Unnamed {
			c.Same++
			continue
		}
		c.states[x.Fingerprint] = New
		changes[x.Fingerprint] = len(c.New)
		c.New = append(c.New, change)
	}
	for _, e := range known {
		if c.states[e.Fingerprint] == NotCompared {
			c.states[e.Fingerprint] = Unchanged // listed once
			c.Gone = append(c.Gone, e)
		}
	}
	return c
}

// State returns the state of a finding of the run. It is NotCompared for a nil Comparison.
func (c *Comparison) State(x *findings.Finding) State {
	if c == nil {
		return NotCompared
	}
	return c.states[x.Fingerprint]
}

// Identified reports whether the fingerprint of a finding contains names of functions: an own frame
// has a name, or, if no frame is own, any frame. An error that a log reports with its source line,
// without a stack, is identified by the file. Otherwise all findings of a kind in an object file
// have the same fingerprint, which cannot show that a finding is known.
func Identified(x *findings.Finding) bool {
	if len(x.Traces) == 0 {
		return false
	}
	frames := x.Traces[0].Frames
	isNamed := func(f *findings.TraceFrame) bool { return f.Named() || f.Object == "" && f.File != "" }
	if x.OwnFrame() == nil {
		return slices.ContainsFunc(frames, isNamed)
	}
	return slices.ContainsFunc(frames, func(f *findings.TraceFrame) bool { return f.IsOwn && isNamed(f) })
}

// Entries returns an entry for each fingerprint of a run whose findings are [Identified], in the
// order of the findings. file returns the source file of a finding, as people know it.
func Entries(run *findings.Collection, file func(*findings.Finding) string) (all []Entry) {
	is := make(map[string]bool)
	for _, x := range run.All() {
		if is[x.Fingerprint] || !Identified(x) {
			continue
		}
		is[x.Fingerprint] = true
		all = append(all, Entry{
			Fingerprint: x.Fingerprint,
			Kind:        x.Kind,
			Function:    function(x),
			File:        file(x),
			Program:     program(run, x),
		})
	}
	return all
}

// function returns the function of a finding, or "" if it has none.
func function(x *findings.Finding) string {
	for _, f := range []*findings.TraceFrame{x.OwnFrame(), x.Place()} {
		switch {
		case f == nil:
		case f.Func != "":
			return f.Func
		case f.Linkage != "":
			return f.Linkage
		}
	}
	return ""
}

// program returns the program of the first process that had the finding and whose command is known.
// If there is none, it returns "".
func program(run *findings.Collection, x *findings.Finding) string {
	for _, o := range x.Seen {
		if p := run.Process(o.Process); p != nil && len(p.Command) > 0 && p.Command[0] != "" {
			return p.Command[0]
		}
	}
	return ""
}
