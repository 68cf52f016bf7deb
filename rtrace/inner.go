package rtrace

import (
	"io"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/findings"
)

func init() {
	access.Rtrace = func(o any) any { return (*inner)(o.(*Options)) }
}

// An inner is Options with methods for this module's packages only: see [access.Rtrace].
type inner Options

// NewFindings returns a writer that adds the leaks and the processes of a report to the
// Collection. The Options' Symbolizer resolves the frames. A leak groups the resources of one
// type that were allocated with the same backtrace and not freed. Its kind is the type.
// NewFindings sets Leaks and Compress of Processing; the other fields select calls. input is
// the report's name; own distinguishes own frames from system frames. Writes never fail. The
// writer and the Collection must be used by the same goroutine.
func (i *inner) NewFindings(to *findings.Collection, input string, own *findings.Own) io.WriteCloser {
	return newFinder(to, input, own, Options(*i))
}
