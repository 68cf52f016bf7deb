package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/symfilter/symfilter/callgrind"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/rtrace"
)

// Forms of --output with weighted stacks, for viewers of profiles.
const (
	outputPprof      = "pprof"
	outputFolded     = "folded"
	outputSpeedscope = "speedscope"
)

func isStacked(form string) bool {
	return form == outputPprof || form == outputFolded || form == outputSpeedscope
}

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

// hasNoStacks reports whether an output of stacks is empty, since no input was a profile.
func (l *pipeline) hasNoStacks() bool {
	if !isStacked(l.form) || l.file == nil || l.file.whole == nil {
		return false
	}
	info, err := l.file.Stat()
	return err == nil && info.Size() == 0
}

// onlyStacks replaces the translators of inputs without weighted stacks by translators that fail.
// If the output already has the stacks of an sp-rtrace report, every translator fails.
func (r *reports) onlyStacks(t *input.Translators) {
	none := func() io.WriteCloser {
		return &noStacks{err: fmt.Errorf("--output=%s needs a profile of Callgrind or a report of sp-rtrace, and the input is neither: use another --output, or --input=callgrind if the input begins with lines of a log", r.output)}
	}
	t.Markup, t.Valgrind = none, none
	t.Container = func(input.Format) io.WriteCloser { return none() }
	if r.traced { // the output has the stacks of a report of sp-rtrace
		one := func() io.WriteCloser {
			return &noStacks{err: fmt.Errorf("--output=%s accepts one report of sp-rtrace and nothing else: filter each input in a run of its own", r.output)}
		}
		t.Callgrind, t.RTrace = one, one
	}
}

// tracedStacks returns the translator that prints the stacks of a report of sp-rtrace.
func (r *reports) tracedStacks(at *arrival, o rtrace.Options) io.WriteCloser {
	if r.joined != nil && r.joined.inputs > 0 {
		return &noStacks{err: fmt.Errorf("--output=%s accepts profiles of Callgrind or one report of sp-rtrace, not both: filter each in a run of its own", r.output)}
	}
	r.traced = true
	o.Output = map[string]rtrace.Output{outputPprof: rtrace.Pprof, outputFolded: rtrace.Folded, outputSpeedscope: rtrace.Speedscope}[r.output]
	return rtrace.NewReport(at.batch.w, o)
}

// A noStacks is the translator for an input without weighted stacks. Its error is a usage error.
type noStacks struct {
	err      error
	reported bool
}

func (n *noStacks) Write([]byte) (int, error) { return 0, n.Close() }

func (n *noStacks) Close() error {
	if n.reported {
		return nil
	}
	n.reported = true
	return usageError{n.err}
}

var errBinary = errors.New("--output=pprof is binary, and standard output is a terminal: write --output=pprof:FILE")
