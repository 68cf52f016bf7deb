package rtrace

import (
	"io"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/findings"
)

func init() {
	access.Rtrace = func(o any) any { return (*inner)(o.(*Options)) }
}

// The methods of inner are for the packages of this module: see [access.Rtrace].
type inner Options

// NewFindings returns a writer that adds the leaks of the report written to it to the Collection,
// with frames resolved by the Options' Symbolizer, and the processes of the report. A leak groups
// the resources of one type that were allocated with the same backtrace and not freed; its kind is
// the type. NewFindings sets the fields Leaks and Compress of Processing; the other fields select
// calls. input is the name of the report; own distinguishes own frames from system frames. Writes
// never fail. The writer and the Collection must be used by the same goroutine.
func (i *inner) NewFindings(to *findings.Collection, input string, own *findings.Own) io.WriteCloser {
	return newFinder(to, input, own, Options(*i))
}
