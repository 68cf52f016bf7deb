package callgrind

import (
	"io"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// Output is the form in which a report is printed.
type Output uint8

// The outputs.
const (
	Table      Output = iota // functions and their costs, for people
	JSON                     // objects of report.schema.json, one in each line
	Profile                  // the profile again, with names
	Pprof                    // stacks in pprof's format, compressed
	Folded                   // stacks of one event, a line for each
	Speedscope               // stacks in the JSON of speedscope
)

// Tree selects which neighbours of a function a table shows.
type Tree uint8

// The bits of a Tree.
const (
	Callers Tree = 1 << iota // the callers of the function
	Calling                  // the functions that it called
)

// Options are ReportOptions, which all readers of reports have, and more options for profiles. In
// ReportOptions, Unresolved counts functions, not frames. With Elements, only addresses in files
// with a build ID become elements. Memory bounds the names, places and calls of the profile. Beyond
// it, the costs of new places are added to their functions.
type Options struct {
	symbolize.ReportOptions

	// Foreign receives the lines outside of the profile, unchanged. NewReport uses it with
	// Table only, and closes it before the table. NewMarkup renders such lines as text. If
	// Foreign is nil, and in other outputs, such lines are left out and reported to Diagnose.
	Foreign io.WriteCloser

	// Label is the profile's name in the heading of a table. Each input of [Report.Begin] has a
	// separate label.
	Label string

	// Parts and Threads select parts of the profile by the numbers in the part: and thread: lines
	// of their headers. A part without a number is numbered by its position. If both are empty, all
	// parts are read. NewMarkup reads all parts.
	Parts, Threads []int

	// Output is the form that NewReport prints. The options from Tree to Around, and Color,
	// apply to Table only, with two exceptions. Show also selects the events of stacks.
	// Inclusive, Show and Sort also order the functions in JSON.
	Output Output

	// Tree adds the callers and callees of each function. Inclusive sorts functions by their
	// cost including all functions they called, not by their own cost.
	Tree      Tree
	Inclusive bool

	// Show lists the events that have columns, by name or by definition (Name = 2 Ir + Dr). If
	// Show is empty, as many events are shown as fit. Sort lists the events that order the
	// functions. If Sort is empty, the shown events order them.
	Show, Sort []string

	// Threshold is the percentage of the costs that the shown functions have together. With
	// Inclusive, functions with a share below 100 - Threshold percent are omitted. 0 selects
	// the default, 99.
	Threshold float64

	// Source shows source files with the costs of their lines. Only files below SourceRoots,
	// and below the New folders of PrefixMap, are opened. Symbolic links do not lead out of
	// these folders. If SourceRoots is empty, the current folder is used. A relative name is
	// searched for below each root.
	Source      bool
	SourceRoots []string

	// Around is the number of lines shown before and after each line with costs. 0 selects the
	// default, 3. A negative number selects no lines.
	Around int

	// Limits are bounds of costs. The report fails if a limit does not hold, or if the profile
	// was cut or has no costs: see [Report.Failed].
	Limits []Limit

	// FunctionNames and FileNames change the names by which a [Comparison] matches functions and
	// limits refer to them.
	FunctionNames, FileNames []Substitution

	// Color adds colours for a terminal.
	Color bool
}

func (o *Options) report() *report.Options { return (*report.Options)(&o.ReportOptions) }
