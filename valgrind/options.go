package valgrind

import (
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// Options are the options of all readers of reports, and the load biases of object files. With
// a Symbolizer and without Elements, NewMarkup renders named frames as text. Such a frame
// becomes an element if the symbolizer has more about it than the report.
type Options struct {
	symbolize.ReportOptions

	// Maps are the known load biases. The load biases of other files are inferred.
	Maps []Map

	// Ahead holds the facts of the whole report, if it is a file: see [ReadAhead]. If Ahead is
	// nil, a load bias is inferred from the records up to the frame.
	Ahead *Ahead
}

func (o *Options) report() *report.Options { return (*report.Options)(&o.ReportOptions) }
