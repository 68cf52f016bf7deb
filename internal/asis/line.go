package asis

import (
	"fmt"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/symbolize"
)

// A Line is a parsed command line.
type Line struct {
	Names     symbolize.Names
	DebugDirs []string // in place of /usr/lib/debug, for debug files by build ID; may be nil
	DWP       string   // the package of split units; may be empty
	Fallback  string   // in place of /usr/lib/debug, for debug links; may be empty
	NoServers bool     // no debuginfod server is asked
	Markup    bool     // --filter-markup: the line is not for this package
	Help      bool
	Version   bool
	Questions []string // without any, questions are read from standard input

	program *Program
	tool    string // the name for messages: as the program was started

	style                               style
	paths                               paths
	addresses, pretty, verbose, mangled bool
	inlines                             bool
	context                             int // lines of source text
	adjust                              uint64

	object    string // --obj
	hasObject bool
	buildID   string // --build-id
	idFlag    string // spelling of the flag of buildID; empty: not given

	file              string // -e of binutils and elfutils
	section           string // -j
	target            string // -b
	named             bool   // -f
	symbols, sections bool   // -S and -x of elfutils

	missing   string // the flag at the end of the line that needs a value
	errors    []string
	badNumber string
}

// A style selects the form of answers: the text of LLVM's tools, the text of GNU's tools, or JSON.
type style uint8

const (
	styleLLVM style = iota
	styleGNU
	styleJSON
)

// paths selects the form of source paths.
type paths uint8

const (
	wholePaths paths = iota
	relativePaths
	onlyNames
)

// Parse reads a command line. tool is the name that the program was started with; env is the value
// of p.Env.
func (p *Program) Parse(tool, env string, args []string) *Line {
	l := &Line{program: p, tool: tool, inlines: !p.gnu, mangled: p.gnu}
	if p.family != ofLLVM {
		l.Names, l.NoServers, l.file = symbolize.DebugNames, true, "a.out"
	}
	switch p.family {
	case ofBinutils:
		l.parseGNU(binutilsFlags[:], Expand(args))
		return l
	case ofElfutils:
		l.parseGNU(elfutilsFlags[:], args)
		return l
	}
	if p.gnu {
		l.style, l.Names = styleGNU, symbolize.NoNames
	}
	l.parse(Expand(append(ShellWords(env), args...)))
	return l
}

// Refusal returns the other program's message about a wrong command line; empty for a valid one.
func (l *Line) Refusal() string {
	switch {
	case len(l.errors) > 0 && l.program.family != ofLLVM:
		return l.errors[0]
	case l.missing != "" || len(l.errors) > 0:
		var text strings.Builder
		if l.missing != "" {
			text.WriteString("error: " + l.missing + ": missing argument\n")
		}
		for _, e := range l.errors {
			text.WriteString("error: " + e + "\n")
		}
		return text.String()
	case l.Help || l.Version:
	case l.badNumber != "":
		return l.badNumber // without a newline, as in LLVM
	case l.Markup:
	case l.idFlag != "" && l.hasObject:
		return "error: cannot specify both --build-id and --obj\n"
	case l.idFlag != "" && parseID(l.buildID).IsZero():
		return fmt.Sprintf("%s: expected a build ID, but got '%s'\n", l.idFlag, printable(l.buildID))
	}
	return ""
}

// fail records an error. Words of the command line in the error are untrusted, so it is escaped.
func (l *Line) fail(format string, args ...any) {
	l.errors = append(l.errors, printable(fmt.Sprintf(format, args...)))
}

// printable escapes s for a terminal, except tabs: LLVM prints tabs, which only move the cursor.
func printable(s string) string { return string(escape.AppendText(nil, s, "\t")) }

// HelpText returns the output of --help.
func (l *Line) HelpText() string {
	switch l.program.family {
	case ofBinutils:
		return binutilsHelp
	case ofElfutils:
		return elfutilsHelp
	}
	return "USAGE: " + l.program.Name + ` [options] addresses...

Answers like ` + l.program.Name + ` of LLVM 19, by symfilter. Without addresses, reads
them from standard input, and prints each answer at once. symfilter help as
lists the options, and what is refused.
`
}

// VersionText returns the output of --version. LLVM's tools print two lines, and programs look for
// the name in the first.
func (l *Line) VersionText(own string) string {
	switch l.program.family {
	case ofElfutils:
		return "eu-addr2line (elfutils) 0.188, emulated by symfilter " + own + "\n"
	case ofBinutils:
		return "GNU addr2line (symfilter " + own + ", in place of GNU Binutils) 2.40\n"
	}
	return l.program.Name + "\nsymfilter " + own + ", in place of LLVM version 19\n"
}

// Rules sets a symbolizer's options to the program's rules. All programs but binutils show Rust's
// old names as C++. LLVM's tools read no supplementary files.
func (l *Line) Rules(o *symbolize.Options) {
	o.Reaching, o.Details, o.Names = true, true, l.Names
	o.OldRustAsLLVM, o.NoAlt = l.program.family != ofBinutils, l.program.family == ofLLVM
}
