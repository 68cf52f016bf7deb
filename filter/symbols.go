package filter

import (
	"context"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

// symbols return the answers for addresses. If within is not nil, a call returns when within is
// done, even if a file is slow.
type symbols interface {
	Code(ctx, within context.Context, dst []symbolize.Frame, l symbolize.Location) ([]symbolize.Frame, error)
	Data(ctx, within context.Context, l symbolize.Location) (symbolize.Variable, error)
}

// symbolFiles give access to the files of modules. Their contexts have the same meaning as those of
// symbols. Search does not wait.
type symbolFiles interface {
	Layout(ctx, within context.Context, id buildid.ID, name string) (segments []object.Segment, fixed bool, err error)
	Examine(ctx, within context.Context, id buildid.ID, name string, do func(*object.File)) error
	Search(id buildid.ID, name string)
}

// symbolsAhead answer the questions of workers of the look-ahead, without waiting for a file.
type symbolsAhead interface {
	TryCode(dst []symbolize.Frame, l symbolize.Location) (frames []symbolize.Frame, ok bool)
	BesideCode(dst []symbolize.Frame, l symbolize.Location) (frames []symbolize.Frame, ok bool)
}

// symbolReaders describe the readers of files. Jobs is the number of goroutines that read one file
// at once. Faults counts failures of readers: after a failure, a file may give other answers.
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
