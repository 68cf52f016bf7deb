package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/callgrind"
	"github.com/symfilter/symfilter/markup"
)

type callgrindFlags struct {
	tree      string
	sort      string
	show      string
	threshold *float64
	inclusive bool
	parts     numberList
	threads   numberList
}

func (r *reports) callgrind(at *arrival) io.WriteCloser {
	switch {
	case r.found != nil:
		return noPage{errNoFindings}
	case r.output == outputHTML:
		return noPage{errProfile}
	case r.output == outputMarkup:
		return r.asMarkup(at, func(dst markup.Sink) io.WriteCloser { return callgrind.NewMarkup(dst, r.profileOptions(at)) })
	case r.joined != nil:
		return r.joined.add(at)
	}
	o := r.profileOptions(at)
	if o.Output == callgrind.Table {
		at.batch.on = true
		o.Foreign = logLines{at}
	}
	return profileReport{callgrind.NewReport(at.batch.w, o), at}
}

func (r *reports) profileOptions(at *arrival) callgrind.Options {
	f := &r.c.callgrind
	o := callgrind.Options{
		ReportOptions: r.options(at),
		Label:         at.label,
		Tree:          map[string]callgrind.Tree{"caller": callgrind.Callers, "calling": callgrind.Calling, "both": callgrind.Callers | callgrind.Calling}[f.tree],
		Inclusive:     f.inclusive,
		Show:          splitWords(f.show),
		Sort:          splitWords(f.sort),
		Parts:         f.parts,
		Threads:       f.threads,
		Limits:        r.c.changes.limits,
		Source:        r.c.source.lines.on || len(r.c.source.roots) > 0,
		Color:         r.color,
	}
	o.FunctionNames, o.FileNames = r.c.changes.functions, r.c.changes.files
	o.SourceRoots = r.c.source.roots
	if lines := r.c.source.lines; lines.on {
		o.Around = lines.n
		if o.Around == 0 {
			o.Around = -1
		}
	}
	if f.threshold != nil {
		o.Threshold = max(*f.threshold, math.SmallestNonzeroFloat64) // 0 is the default
	}
	o.Output = callgrindOutput(r.output)
	return o
}

// A logLines writes lines outside of the profile to the log filter.
type logLines struct{ at *arrival }

func (l logLines) Write(p []byte) (int, error) { return l.at.filter.Write(p) }

func (l logLines) Close() error { return errors.Join(l.at.filter.Close(), l.at.batch.Flush()) }

// A profileReport flushes its batch after each write.
type profileReport struct {
	*callgrind.Report
	at *arrival
}

func (p profileReport) Write(b []byte) (int, error) {
	n, err := p.Report.Write(b)
	if err == nil {
		err = p.at.batch.Flush()
	}
	return n, err
}

func (p profileReport) Close() error { return asUsage(p.Report.Close()) }

// asUsage turns errors that other flags can avoid into usage errors: an unknown event, an unknown
// part, and too little memory.
func asUsage(err error) error {
	_, isEvent := errors.AsType[*callgrind.EventError](err)
	_, isPart := errors.AsType[*callgrind.PartError](err)
	if isEvent || isPart || errors.Is(err, callgrind.ErrMemory) {
		return usageError{err}
	}
	return err
}

func splitWords(s string) (words []string) {
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// A percentage is a flag with a number from 0 to 100.
type percentage struct{ n **float64 }

func (p percentage) Set(s string) error {
	n, err := strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !(n >= 0 && n <= 100) {
		return fmt.Errorf("not a number from 0 to 100")
	}
	*p.n = &n
	return nil
}

// A numberList is a flag with a list of numbers, separated by commas.
type numberList []int

func (l *numberList) Set(s string) error {
	for word := range strings.SplitSeq(s, ",") {
		n, err := strconv.ParseUint(strings.TrimSpace(word), 10, 31)
		if err != nil || n == 0 {
			return fmt.Errorf("not a positive number or a list of positive numbers separated by commas")
		}
		*l = append(*l, int(n))
	}
	return nil
}
