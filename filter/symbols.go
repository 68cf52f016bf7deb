package filter

import (
	"context"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

// symbols are the questions of a Filter to its Symbolizer. Those with a context within end with it,
// if it is not nil, whatever a file costs.
type symbols interface {
	Code(ctx, within context.Context, dst []symbolize.Frame, l symbolize.Location) ([]symbolize.Frame, error)
	Data(ctx, within context.Context, l symbolize.Location) (symbolize.Variable, error)
	Layout(ctx, within context.Context, id buildid.ID, name string) (segments []object.Segment, fixed bool, err error)
	Examine(ctx, within context.Context, id buildid.ID, name string, do func(*object.File)) error
	Search(id buildid.ID, name string)
}

// aheadSymbols are the questions of other goroutines than that of the Filter: see ahead.
type aheadSymbols interface {
	TryCode(dst []symbolize.Frame, l symbolize.Location) (frames []symbolize.Frame, ok bool)
	BesideCode(dst []symbolize.Frame, l symbolize.Location) (frames []symbolize.Frame, ok bool)
	Faults() int64 // a file may answer otherwise after each
	Jobs() int     // goroutines that may read one file at once
}

// symbols and ahead return what is asked of the Symbolizer.
func (o *Options) symbols() symbols           { return access.Symbolizer(o.Symbolizer).(symbols) }
func (o *Options) aheadSymbols() aheadSymbols { return access.Symbolizer(o.Symbolizer).(aheadSymbols) }
