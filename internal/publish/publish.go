// Package publish prints the findings of a run in the formats of builds, editors and code hosts.
//
// Every format requires a file and a line for each finding, and file names relative to the root of
// the repository. See [Result].
package publish

import (
	"cmp"
	"math"
	"path"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/gate"
)

// A Result has the findings of a run. Printers only read it.
type Result struct {
	*findings.Collection

	Version string // version of symfilter
	Base    string // the repository's root: absolute, with / between folders; empty if unknown

	// Bases are further names of the root, such as its name without symbolic links.
	Bases []string

	// Resolve returns the name of a file without symbolic links, if it can: code hosts show nothing
	// at a link. name is relative to the root. If Resolve is nil, names stay as they are.
	Resolve func(name string) string

	// Text returns the text of a source file, named as in a frame; nil if unknown. The printers do
	// not change the text. If Text is nil, no text is known.
	Text func(file string) []byte

	// Empty lists the inputs that should have a report but have none.
	Empty []string

	SARIF SARIFOptions
	JUnit JUnitOptions

	// Changes are the changes since a baseline or an earlier run; nil without a comparison.
	Changes *gate.Comparison

	// Kinds are the kinds of findings that fail the gate of the run; nil without a gate.
	Kinds *gate.Kinds
}

// fails reports whether a finding should fail a build. If the run was compared with another, only
// new findings fail the build. If the run has a gate, only findings of the gate's kinds do.
func (r *Result) fails(x *findings.Finding) bool {
	return r.Changes.State(x) != gate.Unchanged && (r.Kinds == nil || r.Kinds.Has(x))
}

// path returns the name of a file relative to the root of the repository, without ./ before it.
// Outside of the root, the name is absolute, and inside is false.
func (r *Result) path(name string) (relative string, inside bool) {
	name = path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if name == "." {
		return "unknown", true
	}
	if name == ".." || strings.HasPrefix(name, "../") {
		name = path.Join("/", r.Base, name)
	}
	if !strings.HasPrefix(name, "/") {
		if isDrive(name) {
			return name, false
		}
		return r.resolved(name), true
	}
	if rest, ok := below(r.Base, name); ok {
		return r.resolved(rest), true
	}
	for _, base := range r.Bases {
		if rest, ok := below(base, name); ok {
			return r.resolved(rest), true
		}
	}
	return name, false
}

// below returns the part of the absolute path name after folder. ok is false if name is not below
// folder.
func below(folder, name string) (rest string, ok bool) {
	rest, ok = strings.CutPrefix(name, strings.TrimSuffix(folder, "/")+"/")
	return rest, ok && folder != "" && rest != ""
}

// isDrive reports whether a path begins with a drive of Windows.
func isDrive(name string) bool {
	return len(name) > 1 && name[1] == ':' && 'a' <= name[0]|0x20 && name[0]|0x20 <= 'z'
}

func (r *Result) resolved(name string) string {
	if r.Resolve == nil {
		return name
	}
	return r.Resolve(name)
}

type place struct {
	file   string // as in the debug information or the report
	line   uint32 // from 1
	column uint32 // in bytes, from 1; 0: unknown
	known  bool   // false: file is an object file, a program or a report
}

// place returns the file and line of a finding for the output: see [findings.Finding.Place].
// Without a line, it returns the object file and line 1. Without frames, the file is the program.
func (r *Result) place(x *findings.Finding) place {
	f := x.Place()
	if f != nil && f.HasLine && f.File != "" {
		return placeOf(f)
	}
	p := place{line: 1}
	if f != nil {
		p.file = f.Object
	}
	if p.file == "" {
		p.file = r.program(x)
	}
	return p
}

// placeOf returns the file and line of a frame with a line. It bounds line and column, since
// readers of the formats have signed 32-bit integers, and hostile debug information may have larger
// numbers.
func placeOf(f *findings.TraceFrame) place {
	return place{f.File, min(max(f.Line, 1), math.MaxInt32), min(f.Column, math.MaxInt32), true}
}

// program returns the name of a program that had the finding or, if its command is unknown, the
// name of its report.
func (r *Result) program(x *findings.Finding) string {
	for _, o := range x.Seen {
		p := r.Process(o.Process)
		switch {
		case p == nil:
		case len(p.Command) > 0 && p.Command[0] != "":
			return p.Command[0]
		case p.Input != "":
			return p.Input
		}
	}
	return "unknown"
}

// Bounds of texts, in characters: code hosts cut or refuse longer texts.
const (
	maxName  = 255
	maxAbout = 1024
)

// sentence returns the message of a finding with its function, without a full stop, such as
// "Invalid read of size 4 in invalid(int)".
func sentence(x *findings.Finding) string {
	s, _, _ := strings.Cut(x.Message, " in loss record ") // the record number changes with each run
	s = cmp.Or(strings.TrimSuffix(visible(strings.TrimSpace(s), maxAbout), "."), visible(x.Kind, maxAbout), "Error")
	if f := x.Place(); f != nil && f.Named() {
		s += " in " + functionOf(f)
	}
	return s
}

// functionOf returns the name of a frame's function, at most maxName characters, or "".
func functionOf(f *findings.TraceFrame) string {
	return visible(cmp.Or(f.Func, f.Linkage), maxName)
}

// about returns a trace's message without the address, which differs in each run: "4 bytes inside a
// block of size 40 free'd".
func about(t *findings.Trace) string {
	s := t.Message
	if rest, ok := strings.CutPrefix(s, "Address 0x"); ok {
		if _, rest, ok = strings.Cut(rest, " is "); ok {
			s = rest
		}
	}
	if s = strings.TrimRight(visible(s, maxAbout), ".: "); s != "" {
		return s
	}
	switch t.Role {
	case findings.RoleAllocated:
		return "allocated"
	case findings.RoleFreed:
		return "freed"
	case findings.RoleError:
		return "here"
	}
	return "also here"
}

// visible returns s with control characters made visible. most bounds the number of characters. A
// cut text ends in three dots.
func visible(s string, most int) string {
	if len(s) <= most && isPlain(s) {
		return s
	}
	cut := false
	if len(s) > 4*most { // no character has more than 4 bytes
		s, cut = s[:4*most], true
	}
	s = string(escape.AppendText(nil, s, ""))
	n := 0
	for i := range s {
		if n == most-3 && (cut || len(s)-i > 3) && countFrom(s[i:], 4) {
			return s[:i] + "..."
		}
		n++
	}
	return s
}

// isPlain reports whether s is printable ASCII, as most texts are.
func isPlain(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] < ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}

// countFrom reports whether s has at least n characters.
func countFrom(s string, n int) bool {
	for range s {
		if n--; n == 0 {
			return true
		}
	}
	return false
}

// describe names a process in messages: "app (PID 7) in report.xml".
func describe(p *findings.Process) string {
	s := "a process"
	if len(p.Command) > 0 && p.Command[0] != "" {
		s = visible(path.Base(p.Command[0]), maxName)
	}
	if p.PID != "" {
		s += " (PID " + visible(p.PID, 20) + ")"
	}
	if p.Input != "" {
		s += " in " + visible(p.Input, maxName)
	}
	return s
}

// plural returns the number with the noun: 1 finding, 2 findings.
func plural[N int | int64 | uint64](n N, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return strconv.FormatUint(uint64(n), 10) + " " + noun + "s"
}
