package valgrind

import (
	"io"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/findings"
)

func init() {
	access.Valgrind = func(o any) any { return (*inner)(o.(*Options)) }
}

// An inner has methods of Options for this module's packages only: see [access.Valgrind].
type inner Options

// NewFindings returns a writer that adds the errors and processes of a report to the
// Collection. The Options' Symbolizer resolves the frames. input is the report's name; own
// distinguishes the user's own frames from system frames. Writes never fail. The writer and the
// Collection must be used by the same goroutine.
func (i *inner) NewFindings(to *findings.Collection, input string, own *findings.Own) io.WriteCloser {
	return newFinder(to, input, own, Options(*i))
}

// NewPlaces returns an implementation of profile.Places for one process. program is its command, or
// "". The Maps and ReportOptions apply.
func (i *inner) NewPlaces(program string) any { return newPlaces(program, Options(*i)) }
