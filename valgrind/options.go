package valgrind

import "github.com/symfilter/symfilter/report"

// Options are those of every reader of reports, and what is known of where object files were
// loaded. Without Elements, and with a Symbolizer, a frame of which the report says more than the
// symbolizer does is text.
type Options struct {
	report.Options

	// Maps says exactly where files were loaded. Without it, or for files that are not in it, the
	// load bias is inferred.
	Maps []Map

	// Ahead holds what was learnt of the whole report before, if it is a file. Without it, the load
	// bias of a frame's file is inferred from what came before the frame.
	Ahead *Ahead
}
