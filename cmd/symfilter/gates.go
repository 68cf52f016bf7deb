package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/cli"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/gate"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/publish"
	"github.com/symfilter/symfilter/internal/wording"
)

// gateFlags are the flags that compare findings, or make the run fail because of findings.
type gateFlags struct {
	baseline fileName
	update   bool
	kinds    kindsFlag
	diff     bool

	before int            // inputs before the change, with diff
	file   *gate.Baseline // content of baseline; nil without one
}

// A kindsFlag is a flag with the kinds of findings that make a gate fail.
type kindsFlag struct {
	gate.Kinds
	unknown []gate.UnknownKind
	set     bool
}

func (k *kindsFlag) Set(s string) (err error) {
	k.Kinds, k.unknown, err = gate.ParseKinds(s)
	k.set = true
	return err
}

// gateFlags.on reports whether findings are compared, or judged by a gate.
func (g *gateFlags) on() bool {
	return g.compares() || g.kinds.set && !g.kinds.None()
}

func (g *gateFlags) compares() bool { return g.baseline != "" || g.diff }

// check returns an error if the flags contradict each other, and sets g.before.
func (g *gateFlags) check(c *config, files []string) error {
	if !g.on() {
		return refuse("needs --baseline FILE", usedFlag{"--baseline-update", g.update})
	}
	name := "--gate"
	switch {
	case g.baseline != "" && g.diff:
		return usageError{errors.New("--diff contradicts --baseline: remove one of them")}
	case g.update && g.baseline == "":
		return usageError{errors.New("--baseline-update needs --baseline FILE")}
	case g.baseline != "":
		name = "--baseline"
	case g.diff:
		name = "--diff"
		before, _, err := c.sides(files)
		if err != nil {
			return err
		}
		g.before = len(before)
	}
	for _, o := range c.outputs {
		if g.diff && c.findingsPrinter(o.form) == nil {
			return usageError{fmt.Errorf("--diff has no effect with %s: remove one of them", o.flag())}
		}
	}
	advice := "write --gate=all%s for any error, or kinds such as SEGV, heap-buffer-overflow, Leak_*; symfilter help gates lists them"
	if c.command == input.Valgrind.String() {
		advice = "write --gate=all%s for any error, or kinds such as InvalidRead, InvalidWrite, Leak_*; symfilter help gates lists them"
	}
	for _, kind := range g.kinds.unknown {
		switch {
		case !isMissing(kind.Word): // --gate was used like a switch
			return usageError{fmt.Errorf("--gate: %q is a file; "+advice, kind.Word, " "+kind.Word)}
		case c.command == input.RTrace.String(): // the reports of sp-rtrace name the kinds
			g.kinds.unknown = nil
		case kind.Near != "":
			return usageError{fmt.Errorf("--gate: there is no kind %q; did you mean %s?", kind.Word, kind.Near)}
		}
	}
	if word := g.kinds.NotOfValgrind(); word != "" && c.command == input.Valgrind.String() {
		return usageError{fmt.Errorf("--gate: Valgrind has no kind %q; "+advice, word, "")}
	}
	return refuse("needs whole inputs: remove --follow", usedFlag{name, c.follow.on})
}

func kindsHelp() string {
	var b strings.Builder
	for _, list := range []struct {
		of    string
		kinds []string
	}{{"Valgrind", gate.ValgrindKinds()}, {"logs", gate.LogKinds()}} {
		fmt.Fprintf(&b, "\nThe kinds of %s:\n\n  %s\n", list.of, cli.Wrap(strings.Join(list.kinds, ", "), 2))
	}
	return b.String()
}

// read returns the path of the baseline, if there is one and the run does not update it.
func (g *gateFlags) read() []string {
	if g.baseline == "" || g.update {
		return nil
	}
	return []string{string(g.baseline)}
}

// load reads the baseline. With --baseline-update, the file may be missing or empty.
func (g *gateFlags) load(diag *diagnostics) error {
	if len(g.kinds.unknown) > 0 {
		diag.printf("--gate: no supported tool has findings of the kind %q", g.kinds.unknown[0].Word)
	}
	if g.baseline == "" {
		return nil
	}
	in, err := os.Open(string(g.baseline))
	switch {
	case errors.Is(err, fs.ErrNotExist) && g.update:
		g.file = new(gate.Baseline)
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("--baseline %s: no such file; to make it from the current findings, add --baseline-update", g.baseline)
	case err != nil:
		return fmt.Errorf("--baseline %s: %w", g.baseline, wording.Cause(err))
	}
	defer in.Close()
	if info, err := in.Stat(); g.update && err == nil && info.Mode().IsRegular() && info.Size() == 0 {
		g.file = new(gate.Baseline)
		return nil
	}
	if g.file, err = gate.ReadBaseline(in); err != nil {
		return fmt.Errorf("--baseline %s: %w", g.baseline, wording.Cause(err))
	}
	if g.file.Foreign > 0 {
		diag.printf("--baseline %s: line %d is neither a finding nor a comment that begins with #", g.baseline, g.file.Foreign)
	}
	return nil
}

// findingsPrinter returns the printer of findings in a form, or nil for other forms. With
// --supp-check, text lists the unneeded suppressions. If findings are compared, text and JSON list
// the changes.
func (c *config) findingsPrinter(form string) printFindings {
	switch {
	case c.suppressions.file != nil && form == outputText:
		return c.suppressions.file.PrintUnneeded
	case c.gates.compares() && form == outputText:
		return publish.Changes
	case c.gates.compares() && form == outputJSON:
		return publish.ChangesJSON
	}
	return findingsPrinter(form)
}

// A judgement holds the data from which the gate's result is determined after all inputs.
type judgement struct {
	flags  *gateFlags
	before *findings.Collection // findings of the inputs before the change, with --diff
	after  *findings.Collection
	begun  int      // processes known before the current input
	empty  []string // inputs without a report
	failed bool     // the gate has failed
}

// begin selects the side of a comparison for the next input. index is its position on the command
// line.
func (f *found) begin(index int) {
	if f.gate.flags.diff && index < f.gate.flags.before {
		f.Collection = f.gate.before
	} else {
		f.Collection = f.gate.after
	}
	f.gate.begun = len(f.Processes())
}

// ended is called after an input. If mustReport is set and the input had no report, ended records
// its label.
func (f *found) ended(label string, mustReport bool) {
	if mustReport && len(f.Processes()) == f.gate.begun {
		f.gate.empty = append(f.gate.empty, label)
	}
}

// compare compares the findings with those before the change, or with the baseline, if a flag
// requests this. It must be called after all inputs.
func (f *found) compare(result *publish.Result, today time.Time) {
	f.Collection = f.gate.after
	result.Collection = f.Collection
	if f.gate.flags.on() || f.gate.flags.kinds.set {
		result.Kinds = &f.gate.flags.kinds.Kinds
	}
	switch g := f.gate.flags; {
	case g.diff:
		earlier := *result
		earlier.Collection = f.gate.before
		result.Changes = gate.Compare(f.Collection, gate.Entries(f.gate.before, earlier.File), today)
	case g.baseline != "":
		result.Changes = gate.Compare(f.Collection, g.file.Entries(), today)
	}
}

// judge decides whether the gate fails, and reports the reasons. With --baseline-update, it first
// writes the baseline, and returns an error if the write fails. sound is set if all inputs were
// readable.
func (f *found) judge(result *publish.Result, sound bool, diag *diagnostics, today time.Time) error {
	g := f.gate.flags
	if !g.on() {
		return nil
	}
	run := gate.Run{Collection: f.Collection, Against: result.Changes, Empty: f.gate.empty, Place: result.Place}
	var err error
	if g.update {
		if !sound || len(run.Missing()) > 0 {
			diag.line("--baseline %s is not changed, since findings may be missing", g.baseline)
		} else if err = f.update(result, diag); err == nil {
			run.Against = gate.Compare(f.Collection, g.file.Entries(), today)
		}
	}
	if g.diff {
		for _, missing := range (&gate.Run{Collection: f.gate.before}).Missing() {
			diag.line("--diff: before the change: %s", missing)
		}
	}
	reasons := run.Reasons(&g.kinds.Kinds)
	for _, reason := range reasons {
		diag.line("gate: %s", reason)
	}
	f.gate.failed = len(reasons) > 0
	return err
}

// update writes the findings to the baseline, unless it already has them.
func (f *found) update(result *publish.Result, diag *diagnostics) error {
	g := f.gate.flags
	before := string(g.file.Append(nil))
	unknown := slices.ContainsFunc(f.All(), func(x *findings.Finding) bool { return !gate.Identified(x) })
	if unknown && len(g.file.Entries()) > 0 {
		diag.line("--baseline %s keeps lines whose findings are gone, since findings without names may match them", g.baseline)
	}
	g.file.Update(gate.Entries(f.Collection, result.File), sourcesOf(f.Collection), unknown)
	content := g.file.Append(nil)
	if _, err := os.Stat(string(g.baseline)); err == nil && string(content) == before {
		return nil
	}
	if err := replaceFile(string(g.baseline), content); err != nil {
		return &outputError{string(g.baseline), err}
	}
	return nil
}

// sourcesOf returns the sources of the findings, in alphabetical order.
func sourcesOf(f *findings.Collection) (all []string) {
	for _, p := range f.Processes() {
		if s := string(p.Source); !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	slices.Sort(all)
	return all
}
