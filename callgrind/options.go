package callgrind

import (
	"io"

	"github.com/symfilter/symfilter/report"
)

// Output is what a report is printed as.
type Output uint8

// The outputs.
const (
	Table   Output = iota // functions and their costs, for people
	JSON                  // objects of report.schema.json, one a line
	Profile               // the profile again, with names
)

// Tree says which neighbours of a function a table shows.
type Tree uint8

// Callers and Calling may be combined.
const (
	Callers Tree = 1 << iota // who called it
	Calling                  // whom it called
)

// Options are those of every reader of reports, and what a profile's report shows. Unresolved counts
// functions, not frames. With Elements only addresses in files with a build ID become elements.
type Options struct {
	report.Options

	// Budget bounds the heap that the names, places and calls of the profile take. If it is full,
	// places that are new count for their functions, with a diagnostic. Profiles that are read at
	// the same time may share one. Nil: report.DefaultMaxMemory for this profile alone.
	Budget *report.Budget

	// Foreign takes the lines that are not of a profile, as they came, before the table is printed;
	// it is closed before that. It is for NewReport with Table; NewMarkup makes text of such lines.
	// Nil, and in other outputs: such lines are left out, and Diagnose is told.
	Foreign io.WriteCloser

	// Label is the profile's name, for the heading of a table.
	Label string

	// Output is what NewReport prints. The rest is for a Table.
	Output Output

	// Tree adds callers and called functions to each function. Inclusive orders
	// functions by what they and all that they called cost, not by their own
	// cost.
	Tree      Tree
	Inclusive bool

	// Show lists the events that have columns, by name or by definition
	// (Name = 2 Ir + Dr); none: the profile's, as many as fit. Sort lists those
	// by which functions are ordered; none: as shown.
	Show, Sort []string

	// Threshold is how many percent of the costs the functions that are shown
	// account for; with Inclusive, functions below 100 - Threshold percent are
	// not shown. 0: the default, 99.
	Threshold float64

	// Source shows the costs of lines beside the lines, of files that are there.
	// The profile names the files: only those below SourceRoots are opened, and
	// below folders that are New of PrefixMap. Links do not lead out of them.
	// No SourceRoots: the current folder. A relative name is looked for below
	// each.
	Source      bool
	SourceRoots []string

	// Color marks up the table for a terminal.
	Color bool
}
