package main

import (
	"io"

	"github.com/spf13/pflag"
)

// callgrindFlags are the flags of symfilter callgrind.
type callgrindFlags struct{}

func (f *callgrindFlags) define(set *pflag.FlagSet) {}

// callgrind returns what translates a profile of Callgrind.
func (r *reports) callgrind(at *arrival) io.WriteCloser {
	return passOn{at.batch.w}
}

const callgrindHelp = help
