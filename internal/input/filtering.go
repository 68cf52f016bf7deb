package input

import (
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
)

// A filtering is a Filter with methods that drive it line by line: see [access.Filter].
type filtering struct {
	*filter.Filter
	position
	expecting
	subject
	releaser
}

// A position reports the number of lines that the Filter has read, and the lines that it holds.
type position interface {
	Line() int64
	HeldTrace() int
	HeldModule() int64
}

// An expecting reports which lines the Filter must get.
type expecting interface {
	InDict() bool
	Wants() bool
	HasMark(line []byte) bool
}

// A subject receives the process of a record: its key, program and packages.
type subject interface {
	Enter(key []byte)
	AddProgram(path string)
	AddPackages(text []byte)
}

type releaser interface{ Release() error }

// filteringWith returns a Filter with the options o, which must have an Emit.
func filteringWith(o filter.Options) filtering {
	f := filter.New(nil, o)
	inner := access.Filter(f)
	return filtering{f, inner.(position), inner.(expecting), inner.(subject), inner.(releaser)}
}

// inner returns the translator, or the internal methods of a Filter: see [access.Filter].
func (w *Writer) inner() any {
	if f, ok := w.dst.(*filter.Filter); ok {
		return access.Filter(f)
	}
	return w.dst
}
