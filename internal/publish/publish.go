// Package publish prints the findings of a run in the formats that builds, editors and code hosts
// read.
//
// Every format wants a finding to be at a line of a file, and the file to be named relative to the
// root of the repository. See [Result].
package publish

import (
	"path"
	"strings"

	"github.com/symfilter/symfilter/internal/gate"
	"github.com/symfilter/symfilter/report"
)

// A Result is what a run has found. Printers only read it.
type Result struct {
	*report.Findings

	Version string // of symfilter
	Base    string // the root of the repository: absolute, with / between folders

	// Changes are the changes since a baseline or an earlier run; nil: the run is compared with
	// nothing.
	Changes *gate.Comparison
}

// path returns the name of a source or object file relative to the root of the repository, without
// ./ before it. A file outside of the root keeps its name, and inside is false.
func (r *Result) path(name string) (relative string, inside bool) {
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if rest, ok := strings.CutPrefix(name, strings.TrimSuffix(r.Base, "/")+"/"); ok && strings.HasPrefix(name, "/") && rest != "" {
		return rest, true
	}
	return name, !strings.HasPrefix(name, "/") && name != ".." && !strings.HasPrefix(name, "../")
}

// place returns the file and the line of a finding, the way the formats name them: those of
// [report.Finding.Place], or its object file and line 1 if it has no line. A finding without any
// frame has the program that ran.
func (r *Result) place(x *report.Finding) (file string, line uint32) {
	line = 1
	f := x.Place()
	switch {
	case f != nil && f.HasLine:
		file, line = f.File, max(f.Line, 1)
	case f != nil:
		file = f.Object
	}
	if file == "" {
		file = r.program(x)
	}
	file, _ = r.path(file)
	return file, line
}

// program returns the name of a program that had the finding.
func (r *Result) program(x *report.Finding) string {
	for _, o := range x.Seen {
		if p := r.Process(o.Process); p != nil && len(p.Command) > 0 && p.Command[0] != "" {
			return p.Command[0]
		}
	}
	return "unknown"
}

// sentence returns the message of a finding with its function and what is known of the memory:
// Invalid read of size 4 in invalid(int): Address 0x… is 4 bytes inside a block of size 40 free'd.
func sentence(x *report.Finding) string {
	s := x.Message
	if s == "" {
		s = x.Kind
	}
	if f := x.Place(); f != nil && f.Named() {
		s += " in " + functionOf(f)
	}
	return s
}

// functionOf returns the name of the function of a frame that has one.
func functionOf(f *report.TraceFrame) string {
	if f.Func != "" {
		return f.Func
	}
	return f.Linkage
}
