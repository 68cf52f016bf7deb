package main

import (
	"io"

	"github.com/spf13/pflag"
)

// rtraceFlags are the flags of symfilter rtrace.
type rtraceFlags struct{}

func (f *rtraceFlags) define(set *pflag.FlagSet) {}

// rtrace returns what translates a report of sp-rtrace.
func (r *reports) rtrace(at *arrival) io.WriteCloser {
	return passOn{at.batch.w}
}

const rtraceHelp = help
