package filter

import (
	"context"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

// symbols looks up addresses of code and of data. If within is not nil, a call returns when within
// is done, even if a file is slow.
type symbols interface {
	Code(ctx, within context.Context, dst []symbolize.Frame, l symbolize.Location) ([]symbolize.Frame, error)
	Data(ctx, within context.Context, l symbolize.Location) (symbolize.Variable, error)
}

// symbolFiles gives access to the files of modules. Its methods use ctx and within like the methods
// of symbols. Search starts a search and does not wait.
type symbolFiles interface {
	Layout(ctx, within context.Context, id buildid.ID, name string) (segments []object.Segment, fixed bool, err error)
	Examine(ctx, within context.Context, id buildid.ID, name string, do func(*object.File)) error
	Search(id buildid.ID, name string)
}

// symbolsAhead looks up addresses for workers of the look-ahead, without waiting for a file.
type symbolsAhead interface {
	TryCode(dst []symbolize.Frame, l symbolize.Location) (frames []symbolize.Frame, ok bool)
	BesideCode(dst []symbolize.Frame, l symbolize.Location) (frames []symbolize.Frame, ok bool)
}

// symbolReaders reports how files are read. Jobs is the number of goroutines that may read one file
// at once. Faults counts the failures so far: after a failure, a file may give other answers.
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
