package gate

import (
	"slices"
	"time"

	"github.com/symfilter/symfilter/internal/findings"
)

// A State is the result of a comparison for one finding.
type State uint8

// The states of a finding.
const (
	NotCompared State = iota
	New               // unknown before, or expired, or not Identified: see Compare
	Unchanged         // the baseline or the earlier run has it, too
)

// A Comparison is the difference between the findings of a run and the known ones. Findings with
// equal fingerprints count as one.
type Comparison struct {
	New  []Change // new findings, in their order
	Same int      // found fingerprints that were known before
	Gone []Entry  // known before, but not found; in the order of the entries

	states map[string]State // states by fingerprint
}

// A Change is a set of new findings with one fingerprint: see Compare.
type Change struct {
	Findings []*findings.Finding // at least one
	// last day on which a baseline accepted the fingerprint; zero: never
	Expired time.Time
	Unnamed bool // the findings are not [Identified]: they may be known
}

// Compare compares the findings of a run with the known entries. Findings of expired entries are
// new, and so are findings that are not [Identified].
func Compare(now *findings.Collection, known []Entry, today time.Time) *Comparison {
	c := &Comparison{states: make(map[string]State)}
	// Keep only entries with a fingerprint of this run: a baseline may have many other entries.
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

// Identified reports whether a finding's fingerprint contains the name of a function: of an own
// frame or, if no frame is own, of any frame. For an error without a stack, a source file is
// enough. All other findings of one kind in an object file have the same fingerprint, which does
// not show whether a finding is known.
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

// Entries returns an entry for each fingerprint of a run's [Identified] findings, in their order.
// file returns the source file of a finding, for people.
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

// function returns the function of a finding, or "".
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

// program returns the program of the first process with the finding and a known command, or "".
func program(run *findings.Collection, x *findings.Finding) string {
	for _, o := range x.Seen {
		if p := run.Process(o.Process); p != nil && len(p.Command) > 0 && p.Command[0] != "" {
			return p.Command[0]
		}
	}
	return ""
}
