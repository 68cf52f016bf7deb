package symfilter

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/symfilter/symfilter/debuginfod"
	"github.com/symfilter/symfilter/filter"
)

// Bounds on how long lines of a pipe wait for debug files. They are small, since a person may watch
// the pipe, and its producer is blocked meanwhile.
const (
	StreamWait          = 2 * time.Second  // for one build ID
	StreamWaitPerMinute = 10 * time.Second // in any minute
)

// Options are the options of [New]. The zero value uses the zero value of Symbols, and waits for no
// file.
type Options struct {
	Symbols Symbols
	Filter  filter.Options // New sets Symbolizer and Cache, and Dialects.Complete if it is nil
}

// Defaults returns the options of the command without flags, for a log from a pipe. It reads
// DEBUGINFOD_URLS and the other variables of elfutils. It ignores a variable with an unusable
// value.
func Defaults() Options {
	servers, _ := debuginfod.OptionsFromEnv(os.Getenv)
	return Options{
		Symbols: Symbols{Servers: servers},
		Filter:  filter.Options{Patience: filter.Patience{Local: StreamWait, Servers: StreamWait, PerMinute: StreamWaitPerMinute}},
	}
}

// A Filter is a [filter.Filter] with its own symbols.
type Filter struct {
	*filter.Filter
	opened *Opened
}

// New returns a Filter that prints to w, and never closes w. Only one goroutine at a time may use
// the Filter. New fails only if Options.Symbols.Servers is invalid.
func New(w io.Writer, o Options) (*Filter, error) {
	opened, err := o.Symbols.Open()
	if err != nil {
		return nil, err
	}
	o.Filter.Symbolizer, o.Filter.Cache = opened.Symbolizer, opened.Cache
	if o.Filter.Dialects.Complete == nil {
		o.Filter.Dialects.Complete = opened.Complete
	}
	return &Filter{filter.New(w, o.Filter), opened}, nil
}

// Close prints the rest of the output, and closes the symbols.
func (f *Filter) Close() error { return errors.Join(f.Filter.Close(), f.opened.Close()) }
