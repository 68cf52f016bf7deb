package rtrace

import (
	"errors"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// Output is the form in which a report is printed.
type Output uint8

// The outputs.
const (
	Text Output = iota // the form of the report itself
	JSON               // one JSON object for each record: report.schema.json

	// Stacks of the allocations, for viewers of profiles.
	Pprof
	Folded
	Speedscope
)

// Options are the options of all readers of reports, the output, and the processing of the
// records. The zero value prints the report unchanged. Unless Elements is set, NewMarkup
// renders a frame as text if the report's own text is better than the Symbolizer's answer.
// Memory limits the calls kept for profiles, and for Addresses, Leaks and Compress of
// Processing.
type Options struct {
	symbolize.ReportOptions

	// Output is the form that NewReport prints.
	Output Output

	// Processing selects the records to print, and their order.
	Processing Processing
}

var (
	errNoFile    = errors.New("the mapping is not a file")
	errOtherFile = errors.New("not the file that ran: the code and the mapping differ in size")
)

// unresolved returns a count of 1 for an unresolved frame at s, with the name of its file and the
// reason.
func (s site) unresolved(err error) symbolize.Unresolved {
	switch {
	case s.at == nil:
		return symbolize.Unresolved{Frames: 1}
	case s.at.file == nil:
		return symbolize.Unresolved{Name: s.at.path, Frames: 1, Err: errNoFile}
	case !s.at.placed:
		err = errOtherFile
	}
	return s.at.file.Unresolved(1, err)
}

func (o *Options) report() *report.Options { return (*report.Options)(&o.ReportOptions) }
