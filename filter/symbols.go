package filter

import (
	"context"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

// symbols answer addresses. A question with a context within ends with it, if it is not nil, whatever a
// file costs.
type symbols interface {
	Code(ctx, within context.Context, dst []symbolize.Frame, l symbolize.Location) ([]symbolize.Frame, error)
	Data(ctx, within context.Context, l symbolize.Location) (symbolize.Variable, error)
}

// symbolFiles are the files of modules, and are asked as symbols are. Search waits for nothing.
type symbolFiles interface {
	Layout(ctx, within context.Context, id buildid.ID, name string) (segments []object.Segment, fixed bool, err error)
	Examine(ctx, within context.Context, id buildid.ID, name string, do func(*object.File)) error
	Search(id buildid.ID, name string)
}

// symbolsAhead answer other goroutines than that of the Filter: see ahead.
type symbolsAhead interface {
	TryCode(dst []symbolize.Frame, l symbolize.Location) (frames []symbolize.Frame, ok bool)
	BesideCode(dst []symbolize.Frame, l symbolize.Location) (frames []symbolize.Frame, ok bool)
}

// symbolReaders are what reads the files: how many goroutines read one at once, and how often one
// has failed, after which its file may answer otherwise.
type symbolReaders interface {
	Jobs() int
	Faults() int64
}

func (o *Options) symbols() symbols           { return access.Symbolizer(o.Symbolizer).(symbols) }
func (o *Options) symbolFiles() symbolFiles   { return access.Symbolizer(o.Symbolizer).(symbolFiles) }
func (o *Options) symbolsAhead() symbolsAhead { return access.Symbolizer(o.Symbolizer).(symbolsAhead) }
func (o *Options) symbolReaders() symbolReaders {
	return access.Symbolizer(o.Symbolizer).(symbolReaders)
}
