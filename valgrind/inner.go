package valgrind

import (
	"io"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/findings"
)

func init() {
	access.Valgrind = func(o any) any { return (*inner)(o.(*Options)) }
}

// The methods of inner are for the packages of this module: see [access.Valgrind].
type inner Options

// NewFindings returns a writer that adds the errors of the report written to it to the Collection,
// with frames resolved by the symbolizer of the Options, and the processes that the report is
// about. input is the name of the report; own tells own frames from those of the system. Writes
// never fail. The writer is for one goroutine, which must be that of the Collection.
func (i *inner) NewFindings(to *findings.Collection, input string, own *findings.Own) io.WriteCloser {
	return newFinder(to, input, own, Options(*i))
}

// NewPlaces returns the places of a process that was started as program, which is empty if that is
// not known. The Maps and ReportOptions apply.
func (i *inner) NewPlaces(program string) any { return newPlaces(program, Options(*i)) }
