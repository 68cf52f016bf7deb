package main

import (
	"errors"
	"fmt"
	"io"
	"syscall"

	"github.com/symfilter/symfilter/callgrind"
	"github.com/symfilter/symfilter/input"
)

// joins reports whether all inputs make one profile. So it is with the command callgrind, and if the
// output is stacks; otherwise each input is what it is. The profile with names has the inputs one
// after the other.
func (c *config) joins() bool {
	return isStacked(c.output) || c.command == input.Callgrind.String() && !c.follow.on && c.output != outputMarkup && c.output != outputCallgrind
}

// A jointProfile is the profile that several inputs make together.
type jointProfile struct {
	r      *reports
	report *callgrind.Report // nil before the first input
	inputs int
	first  string // label of the first input
}

// add returns the translator of one more input.
func (j *jointProfile) add(at *arrival) io.WriteCloser {
	if j.report == nil {
		o := j.r.profileOptions(at)
		diagnose := at.diagnose
		o.Diagnose = func(message string) {
			if j.inputs > 1 {
				message = fmt.Sprintf("with %d more: %s", j.inputs-1, message)
			}
			diagnose(message)
		}
		j.first = at.label
		j.report = callgrind.NewReport(at.batch.w, o)
	}
	j.inputs++
	in := callgrind.Input{Label: at.label, Diagnose: at.diagnose}
	if j.r.output == "" || j.r.output == outputText {
		at.batch.on = true
		in.Foreign = logLines{at}
	}
	return &jointInput{j, at, j.report.Begin(in)}
}

// close prints what the inputs are together.
func (j *jointProfile) close() error {
	if j.report == nil {
		return nil
	}
	return asUsage(j.report.Close())
}

// finish prints in each lane what the inputs are together, and returns the exit code of a run that
// has the given code until now.
func (r *filterRun) finish(code int) int {
	if r.stream.unread || r.stream.unwritten {
		return code
	}
	for _, l := range r.lanes {
		if l.reports.joined == nil {
			continue
		}
		err := l.reports.joined.close()
		var usage usageError
		var file *outputError
		switch {
		case err == nil, errors.Is(err, syscall.EPIPE): // the reader of the output has enough
		case errors.As(err, &usage):
			if code != exitUsage { // as another lane's
				r.diag.line("%s: %v", l.reports.joined.first, usage)
			}
			code = exitUsage
		case errors.As(err, &file):
			r.stream.unwritten = true
			r.diag.line("%v", file)
			return exitIO
		default:
			r.stream.unwritten = true
			r.diag.line("write standard output: %v", bare(err))
			return exitIO
		}
	}
	return code
}

// A jointInput is one of the inputs.
type jointInput struct {
	j   *jointProfile
	at  *arrival
	err error
}

func (i *jointInput) Write(b []byte) (int, error) {
	if i.err != nil {
		return 0, i.err
	}
	n, err := i.j.report.Write(b)
	if err == nil {
		err = i.at.batch.Flush()
	}
	return n, err
}

func (i *jointInput) Close() error { return errors.Join(i.err, i.j.report.End(), i.at.batch.Flush()) }
