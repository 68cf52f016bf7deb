package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// log filters a log, report or profile without printing it, and reports for each module that it
// names whether there is a debug file. An error means that the log cannot be read.
func (x *examination) log(ctx context.Context, about *subject, in *os.File) error {
	c := x.c
	label := standardName
	if about.path != "" {
		label = about.word
		var err error
		if in, err = os.Open(about.path); err != nil {
			return fmt.Errorf("open %s: %w", label, wording.Cause(err))
		}
		defer in.Close()
	}
	if err := x.openSymbols(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, max(waitFile, c.wait.Duration))
	defer cancel()

	found, hint, err := c.examine(ctx, x.Opened, in, label)
	if err != nil {
		return err
	}
	modules, outside := found.sorted()
	all := modulesOf(ctx, x.Symbolizer, modules)
	have := 0
	for _, m := range all {
		if m.hasDebugFile() {
			have++
		}
	}
	x.head(fmt.Sprintf("%s: of %s %s", wording.Line(label), wording.Count(int64(len(all)), "module", "modules"), wording.Count(int64(have), "has a debug file", "have debug files")))
	if len(all) == 0 {
		x.none("it names no module to look for")
	}
	if hint != "" {
		x.wrong("it %s", hint)
	}
	var help advice
	var without []symbolize.Unresolved
	for _, m := range all {
		if x.module(&m); !m.hasDebugFile() {
			help.add(c.next(m.Unresolved, m.report), m.Name)
			without = append(without, m.Unresolved)
		}
	}
	help.print(x.w)
	r := c.remedier(x.Symbolizer, found, false)
	for _, text := range r.remedies(without) {
		if text != noRemedy { // the advice above is the same
			fmt.Fprintf(x.w, "       next: %s\n", wording.Line(text))
		}
	}
	if outside > 0 {
		x.wrong("%s in the maps of no module; is a module or mmap element missing in the log?", wording.Count(outside, "address", "addresses"))
	}
	return nil
}

// examine filters in and discards the output. It returns counts of what stayed unresolved. The hint
// is the advice for an input in which nothing can be resolved.
func (c *config) examine(ctx context.Context, opened *symfilter.Opened, in *os.File, label string) (found counts, hint string, err error) {
	prefixes, err := c.prefixMaps()
	if err != nil {
		return found, "", err
	}
	biases, err := c.biases()
	if err != nil {
		return found, "", err
	}
	regular := false
	if info, err := in.Stat(); err == nil {
		regular = info.Mode().IsRegular()
	}
	dialects, err := c.dialects(regular)
	if err != nil {
		return found, "", err
	}
	var sum unresolvedSum
	dialects.Complete, dialects.Taken = opened.Complete, sum.take
	c.output = outputText
	sym := opened.Symbolizer
	o := filter.Options{
		Symbolizer: sym,
		Context:    ctx,
		ProcessKey: c.process.Regexp,
		Patience:   c.wait.of(true),
		Dialects:   dialects,
	}
	at := &arrival{in: in, label: label, batch: &batch{w: io.Discard}, add: sum.add, diagnose: func(string) {}, options: o}
	at.filter = filter.New(at.batch, o)
	r := newReports(c, sym, biases, prefixes)
	r.output = outputText
	e := r.engine(c.inputFormat(), at)
	_, err = io.Copy(e, in)
	err = cmp.Or(err, e.Close())
	sum.add(countsOf(at.filter))
	if _, read := errors.AsType[*os.PathError](err); read {
		return found, "", errors.New(readError(label, err))
	} else if err != nil {
		return found, "", fmt.Errorf("%s: %w", label, err)
	}
	return sum.all(), e.hint(label), nil
}

// An examinedModule is a module that a log names.
type examinedModule struct {
	symbolize.Unresolved // Frames is 0 if all its addresses have names
	report               symbolize.Report
}

// hasDebugFile reports whether the module has a debug file that can be used.
func (m *examinedModule) hasDebugFile() bool {
	return m.report.Path != "" && m.report.Holds == symbolize.DebugInfo && m.report.Fault == ""
}

// modulesOf returns the modules that sym was asked for, after the search for their files, and those
// that stayed unresolved: the ones with the most unresolved addresses first.
func modulesOf(ctx context.Context, sym *symbolize.Symbolizer, missing []symbolize.Unresolved) (all []examinedModule) {
	for _, r := range sym.Reports() {
		m := examinedModule{Unresolved: symbolize.Unresolved{ID: r.ID, Name: r.Name}}
		if r.Pending || r.Path == "" {
			_, m.Err = sym.Ask(ctx, nil, symbolize.Location{ID: r.ID, Name: r.Name}, symbolize.Policy{})
			r = sym.Report(r.ID, r.Name)
		}
		m.report = r
		all = append(all, m)
	}
	for _, u := range missing {
		same := func(m examinedModule) bool {
			return m.ID == u.ID && (!u.ID.IsZero() || m.Name == u.Name)
		}
		if i := slices.IndexFunc(all, same); i >= 0 {
			all[i].Frames += u.Frames
			all[i].Err = u.Err
		} else {
			all = append(all, examinedModule{u, sym.Report(u.ID, u.Name)})
		}
	}
	slices.SortStableFunc(all, func(a, b examinedModule) int {
		return cmp.Or(cmp.Compare(b.Frames, a.Frames), strings.Compare(a.Name, b.Name))
	})
	return all
}

// module reports whether a module has a debug file. A module without one is not a fault if all its
// addresses in the log have names.
func (x *examination) module(m *examinedModule) {
	name, report := nameOf(m.Unresolved), x.none
	if m.Frames > 0 {
		name += ", " + wording.Count(m.Frames, "unresolved address", "unresolved addresses")
		report = x.wrong
	}
	switch {
	case m.hasDebugFile():
		x.good("%s: %s", name, m.report.Path)
	case m.report.Fault != "":
		x.wrong("%s: %s", name, m.report.Fault)
	case m.report.Path == m.Name:
		report("%s: no debug file; the file itself holds %s", name, m.report.Holds)
	case m.report.Path != "":
		report("%s: no debug file; %s holds %s", name, m.report.Path, m.report.Holds)
	case m.report.Pending:
		report("%s: search not finished", name)
	case isReason(m.Err):
		report("%s: %v", name, m.Err)
	default:
		report("%s: no debug file", name)
	}
}

// An advice lists texts with the modules that each would help. Equal texts are printed once.
type advice struct {
	texts   []string
	modules [][]string // for each text
}

// add adds what would help a module; an empty text is ignored.
func (a *advice) add(text, module string) {
	if text == "" {
		return
	}
	i := slices.Index(a.texts, text)
	if i < 0 {
		i = len(a.texts)
		a.texts, a.modules = append(a.texts, text), append(a.modules, nil)
	}
	a.modules[i] = append(a.modules[i], module[strings.LastIndexByte(module, '/')+1:])
}

// print prints each piece of advice, with the names of at most three modules.
func (a *advice) print(w io.Writer) {
	const most = 3
	for i, text := range a.texts {
		names := a.modules[i]
		of := strings.Join(names[:min(len(names), most)], ", ")
		if more := len(names) - most; more > 0 {
			of += fmt.Sprintf(" and %d more", more)
		}
		fmt.Fprintf(w, "       next, for %s: %s\n", wording.Line(of), wording.Line(text))
	}
}
