package valgrind

import (
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// Options are the options of all readers of reports, and the load biases of object files. If there
// is a Symbolizer and Elements is not set, NewMarkup renders named frames as text. It makes an
// element of such a frame if the symbolizer has more about it than the report.
type Options struct {
	symbolize.ReportOptions

	// Maps are the load biases that are known exactly. The load bias of any other file is inferred.
	Maps []Map

	// Ahead holds the facts of the whole report, if the report is a file: see [ReadAhead]. If it is
	// nil, the load bias of a frame's file is inferred from the records up to the frame.
	Ahead *Ahead
}

// report returns the options that all readers share.
func (o *Options) report() *report.Options { return (*report.Options)(&o.ReportOptions) }
