package main

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/symfilter/symfilter/callgrind"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/wording"
)

// joins reports whether all inputs are merged into one profile. The outputs pprof, folded and
// speedscope always are one profile. So is the output of symfilter callgrind, unless files are
// followed, or the output is markup or callgrind.
func (c *config) joins() bool {
	return isStacked(c.output) || c.command == input.Callgrind.String() && !c.follow.on && c.output != outputMarkup && c.output != outputCallgrind
}

// A joinedProfile is the profile that several inputs make together. With --diff, it has two
// profiles, before and after a change.
type joinedProfile struct {
	r      *reports
	run    *filterRun
	before *callgrind.Report // nil before the first input
	after  *callgrind.Report // nil before the first input; the only profile without --diff
	printer
	inputs int
	first  string // label of the first input
}

// A printer prints the joined inputs: a Report or a Comparison.
type printer interface {
	Close() error
	Failed() bool
}

// add returns the translator for another input.
func (j *joinedProfile) add(at *arrival) io.WriteCloser {
	if j.printer == nil {
		j.first = at.label
		j.open(at)
	}
	j.inputs++
	report := j.before
	if j.r.c.changes.diff && j.run.stream.current >= j.r.c.changes.before {
		report = j.after
	}
	in := callgrind.Input{Label: at.label, Diagnose: at.diagnose}
	if !j.r.c.changes.diff && (j.r.output == "" || j.r.output == outputText) {
		at.batch.on = true
		in.Foreign = logLines{at}
	}
	return &joinedInput{report: report, at: at, err: report.Begin(in)}
}

func (j *joinedProfile) open(at *arrival) {
	o := j.r.profileOptions(at)
	if j.r.c.changes.diff {
		o.Diagnose = func(message string) {
			if !at.silent {
				j.run.diag.printf("--diff: %s", wording.Line(message))
			}
		}
		c := callgrind.NewComparison(at.batch.w, o)
		j.before, j.after, j.printer = c.Before, c.After, c
		return
	}
	diagnose := at.diagnose
	o.Diagnose = func(message string) {
		if j.inputs > 1 {
			message = fmt.Sprintf("with %s: %s", wording.Count(int64(j.inputs-1), "more input", "more inputs"), message)
		}
		diagnose(message)
	}
	r := callgrind.NewReport(at.batch.w, o)
	j.before, j.after, j.printer = r, r, r
}

// finish prints the joined inputs of each pipeline, and returns the exit code of the run. code is
// the exit code so far.
func (r *filterRun) finish(code int) int {
	if r.stream.unread || r.stream.unwritten {
		return code
	}
	failed := false
	for _, l := range r.pipelines {
		j := l.reports.joined
		switch {
		case j == nil || j.printer == nil:
			continue
		case j.r.c.changes.diff && code != exitOK:
			if !l.quiet {
				r.diag.line("--diff: nothing is compared, since an input could not be read")
			}
			continue
		case j.r.c.changes.diff && r.stream.stop.signal() != 0:
			continue
		}
		err := asUsage(j.Close())
		failed = failed || j.Failed()
		var usage usageError
		var file *outputError
		switch {
		case err == nil, errors.Is(err, syscall.EPIPE): // the reader of the output has closed it
		case errors.As(err, &usage):
			if code != exitUsage { // another pipeline may have set it
				label := j.first
				if j.r.c.changes.diff {
					label = "--diff"
				}
				r.diag.line("%s: %v", label, usage)
			}
			code = exitUsage
		case errors.As(err, &file):
			r.stream.unwritten = true
			r.diag.line("%v", file)
			return exitIO
		default:
			r.stream.unwritten = true
			r.diag.line("write standard output: %v", wording.Cause(err))
			return exitIO
		}
	}
	if failed && code == exitOK {
		code = exitGate
	}
	return code
}

type joinedInput struct {
	report *callgrind.Report
	at     *arrival
	err    error
}

func (i *joinedInput) Write(b []byte) (int, error) {
	if i.err != nil {
		return 0, i.err
	}
	n, err := i.report.Write(b)
	if err == nil {
		err = i.at.batch.Flush()
	}
	return n, err
}

func (i *joinedInput) Close() error { return errors.Join(i.err, i.report.End(), i.at.batch.Flush()) }
