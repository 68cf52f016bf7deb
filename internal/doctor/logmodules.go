package doctor

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/symfilter/symfilter/internal/wording"
	"github.com/symfilter/symfilter/symbolize"
)

// Log reports whether the modules of an input have debug files. found has the counts of its
// unresolved addresses. hint is the advice of a Sniffer for the input, or empty.
func (x *Examination) Log(ctx context.Context, label string, found Counts, hint string) {
	modules, outside := found.sorted()
	all := modulesOf(ctx, x.Opened.Symbolizer, modules)
	have := 0
	for _, m := range all {
		if m.hasDebugFile() {
			have++
		}
	}
	x.head(fmt.Sprintf("%s: of %s %s", wording.Line(label), wording.Count(int64(len(all)), "module", "modules"), wording.Count(int64(have), "has a debug file", "have debug files")))
	if len(all) == 0 {
		x.none("no module to look for")
	}
	if hint != "" {
		x.wrong("it %s", hint)
	}
	var help advice
	var without []symbolize.Unresolved
	for _, m := range all {
		if x.module(&m); !m.hasDebugFile() {
			help.add(x.next(m.Unresolved, m.report), m.Name)
			without = append(without, m.Unresolved)
		}
	}
	help.print(x.W)
	for _, text := range x.remedier(found, false).remedies(without) {
		if text != noRemedy { // noRemedy repeats the advice above
			fmt.Fprintf(x.W, "       next: %s\n", wording.Line(text))
		}
	}
	if outside > 0 {
		x.wrong("%s outside the maps of all modules; is a module or mmap element missing from the log?", wording.Count(outside, "address", "addresses"))
	}
}

type examinedModule struct {
	symbolize.Unresolved // Frames is 0 if all addresses have names
	report               symbolize.Report
}

// hasDebugFile reports whether the module has a usable debug file.
func (m *examinedModule) hasDebugFile() bool {
	return m.report.Path != "" && m.report.Holds == symbolize.DebugInfo && m.report.Fault == ""
}

// modulesOf returns the modules in sym's reports, and in missing. It waits for the searches for
// their files. The module with the most unresolved addresses is first.
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

// module reports whether a module has a debug file. A missing debug file is a fault only if the log
// has unresolved addresses in the module.
func (x *Examination) module(m *examinedModule) {
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

// An advice lists texts, each with the modules that it would help. It prints equal texts once.
type advice struct {
	texts   []string
	modules [][]string // names of modules, for each text
}

// add adds advice for a module. An empty text is ignored.
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
