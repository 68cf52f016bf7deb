package valgrind

import (
	"io"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/findings"
)

func init() {
	access.Valgrind = func(o any) any { return (*inner)(o.(*Options)) }
}

// An inner is an Options with methods for this module's packages only: see [access.Valgrind].
type inner Options

// NewFindings returns a writer that adds the errors and the processes of the report written to it
// to the Collection. The Options' Symbolizer resolves the frames. input is the name of the report;
// own distinguishes the user's own frames from system frames. Writes never fail. The writer and the
// Collection must be used by the same goroutine.
func (i *inner) NewFindings(to *findings.Collection, input string, own *findings.Own) io.WriteCloser {
	return newFinder(to, input, own, Options(*i))
}

// NewPlaces returns the places of a process; program is its command, empty if unknown. The Maps and
// ReportOptions apply.
func (i *inner) NewPlaces(program string) any { return newPlaces(program, Options(*i)) }
