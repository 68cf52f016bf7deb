package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/symfilter/symfilter/callgrind"
	"github.com/symfilter/symfilter/markup"
)

// callgrindFlags are the flags of symfilter callgrind.
type callgrindFlags struct {
	tree      string
	sort      string
	show      string
	threshold percentage
	inclusive bool
	source    bool
	roots     []string
}

// trees are the values of --tree.
func trees() []string { return []string{"none", "caller", "calling", "both"} }

func (f *callgrindFlags) define(set *pflag.FlagSet) {
	set.Var(&choice{&f.tree, trees()}, "tree", "")
	set.StringVar(&f.sort, "sort", "", "")
	set.StringVar(&f.show, "show", "", "")
	set.Var(&f.threshold, "threshold", "")
	set.VarPF((*truth)(&f.inclusive), "inclusive", "", "").NoOptDefVal = "true"
	set.VarPF((*truth)(&f.source), "source", "", "").NoOptDefVal = "true"
	set.Var(&stringList{list: &f.roots}, "source-root", "")
}

// callgrind returns what translates a profile of Callgrind.
func (r *reports) callgrind(at *arrival) io.WriteCloser {
	f := &r.c.callgrind
	o := callgrind.Options{
		Options:   r.options(at),
		Budget:    r.profiles,
		Label:     at.label,
		Tree:      map[string]callgrind.Tree{"caller": callgrind.Callers, "calling": callgrind.Calling, "both": callgrind.Callers | callgrind.Calling}[f.tree],
		Inclusive: f.inclusive,
		Show:      splitWords(f.show),
		Sort:      splitWords(f.sort),
		Source:    f.source || len(f.roots) > 0,
		Color:     r.color,
	}
	o.SourceRoots = f.roots
	if f.threshold.set {
		o.Threshold = max(f.threshold.n, math.SmallestNonzeroFloat64) // 0 is the default
	}
	switch r.output {
	case outputMarkup:
		return r.asMarkup(at, func(dst markup.Sink) io.WriteCloser { return callgrind.NewMarkup(dst, o) })
	case outputJSON:
		o.Output = callgrind.JSON
	case outputCallgrind:
		o.Output = callgrind.Profile
	default:
		at.batch.on = true
		o.Foreign = logLines{at}
	}
	return profileReport{callgrind.NewReport(at.batch.w, o), at}
}

// logLines takes the lines of an input that are not of its format: they are printed as those of a log
// are.
type logLines struct{ at *arrival }

func (l logLines) Write(p []byte) (int, error) { return l.at.filter.Write(p) }

func (l logLines) Close() error { return errors.Join(l.at.filter.Close(), l.at.batch.Flush()) }

// A profileReport prints as soon as there is something, and makes errors of flags of those about
// events.
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

func (p profileReport) Close() error {
	err := p.Report.Close()
	var event *callgrind.EventError
	if errors.As(err, &event) {
		return usageError{err}
	}
	return err
}

// splitWords returns what commas separate.
func splitWords(s string) (words []string) {
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			words = append(words, w)
		}
	}
	return words
}

// A percentage is a number from 0 to 100.
type percentage struct {
	n   float64
	set bool
}

func (p *percentage) String() string { return strconv.FormatFloat(p.n, 'g', -1, 64) }
func (p *percentage) Type() string   { return "percent" }

func (p *percentage) Set(s string) (err error) {
	p.n, err = strconv.ParseFloat(strings.TrimSuffix(s, "%"), 64)
	if err != nil || !(p.n >= 0 && p.n <= 100) {
		return fmt.Errorf("not a number from 0 to 100")
	}
	p.set = true
	return nil
}

const callgrindHelp = `symfilter callgrind [flags] [FILE...]

Prints what a profile of Callgrind, Cachegrind or another producer of the format
says: its functions and what they cost, those of stripped programs by name.

  symfilter callgrind -s /srv/symbols callgrind.out.4711
  symfilter callgrind --inclusive --tree=both callgrind.out.* | less
  symfilter callgrind --output=callgrind callgrind.out.4711 >named.out

Its own flags:
      --inclusive          order by what functions and all that they called cost
      --tree=WHOM          under and above each function: caller, calling, both
      --threshold=PERCENT  functions that cost so much together (99); with
                           --inclusive: that cost more than the rest each
      --show=EVENTS        columns: events of the profile, calculated ones, and
                           such as Sum=Ir+10*D1mr; separated by commas
      --sort=EVENTS        order by these; otherwise as shown
      --source             also lines of source files below the current folder,
                           with their costs
      --source-root DIR    of those below DIR instead (repeatable)

Those of symfilter that count here most:
      --output FORM        text (the table), json, markup, or callgrind: the
                           profile with names, for KCachegrind
  -s, --symbol-path PATH   debug files, or folders of them (repeatable)
      --sysroot DIR        where the objects of the profile are, if not at /
      --prefix-map OLD=NEW where objects and sources are that begin with OLD
All of them: symfilter man | man -l -

Lines that are not of a profile are printed as those of a log, before the table.
To filter a log with the name callgrind, write ./callgrind.
`
