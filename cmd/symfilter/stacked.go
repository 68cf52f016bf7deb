package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/symfilter/symfilter/callgrind"
	"github.com/symfilter/symfilter/input"
)

// The forms of --output that are weighted stacks, for viewers of profiles.
const (
	outputPprof      = "pprof"
	outputFolded     = "folded"
	outputSpeedscope = "speedscope"
)

// isStacked reports whether a form of output is weighted stacks.
func isStacked(form string) bool {
	return form == outputPprof || form == outputFolded || form == outputSpeedscope
}

// callgrindOutput returns the form of a profile's report.
func callgrindOutput(form string) callgrind.Output {
	switch form {
	case outputJSON:
		return callgrind.JSON
	case outputCallgrind:
		return callgrind.Profile
	case outputPprof:
		return callgrind.Pprof
	case outputFolded:
		return callgrind.Folded
	case outputSpeedscope:
		return callgrind.Speedscope
	}
	return callgrind.Table
}

// hasNoStacks reports whether the file of an output should have stacks, and is empty: no input was a
// profile.
func (l *lane) hasNoStacks() bool {
	if !isStacked(l.form) || l.file == nil || l.file.whole == nil {
		return false
	}
	info, err := l.file.Stat()
	return err == nil && info.Size() == 0
}

// onlyStacks makes inputs that have no weighted stacks fail.
func (r *reports) onlyStacks(t *input.Translators) {
	none := func() io.WriteCloser { return &noStacks{form: r.output} }
	t.Markup, t.Valgrind, t.RTrace = none, none, none
	t.Container = func(input.Format) io.WriteCloser { return none() }
}

// noStacks is the translator of an input that has no weighted stacks. Its error is that of the usage.
type noStacks struct {
	form     string
	reported bool
}

func (n *noStacks) Write([]byte) (int, error) { return 0, n.Close() }

func (n *noStacks) Close() error {
	if n.reported {
		return nil
	}
	n.reported = true
	return usageError{fmt.Errorf("--output=%s needs a profile of Callgrind, and the input is not one: use another --output, or --input=callgrind if it begins with lines of a log", n.form)}
}

// errBinary is the error for an output that a terminal cannot show.
var errBinary = errors.New("--output=pprof is binary, and standard output is a terminal: write --output=pprof:FILE")
