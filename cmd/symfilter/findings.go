package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/symfilter/symfilter/internal/publish"
	"github.com/symfilter/symfilter/report"
)

// A printFindings prints what a run has found.
type printFindings func(io.Writer, *publish.Result) error

// findingsPrinter returns the printer of an output that has the findings of a run; nil for other
// outputs.
func findingsPrinter(form string) printFindings {
	switch form {
	case outputCodeQuality:
		return publish.CodeQuality
	}
	return nil
}

// found is what a run finds, and the outputs that print it after all inputs.
type found struct {
	*report.Findings
	own    *report.Own
	outs   []foundOutput
	gate   judgement
	prints func(form string) printFindings
}

type foundOutput struct {
	form string
	w    io.Writer
	file *outputFile // that w is; nil: standard output
}

// collect makes the collection of findings, whose memory budget bounds.
func (f *found) collect(c *config, budget *report.Budget) (err error) {
	f.gate.flags, f.prints = &c.gates, c.findingsPrinter
	f.gate.after = report.NewFindings(budget)
	if c.gates.diff {
		f.gate.before = report.NewFindings(budget)
	}
	f.own, err = report.NewOwn(c.look.rules)
	return err
}

// end prints the findings to all outputs and gives their files their names. Then it decides whether
// the gate fails. If whole is not set, the inputs were not read to the end, and there is nothing of
// this; if sound is not set, one could not be read. It returns all errors.
func (f *found) end(whole, sound bool, diag *diagnostics) (errs []error) {
	result := publish.Result{Findings: f.Findings, Version: release(version())}
	if dir, err := os.Getwd(); err == nil { // otherwise names stay absolute
		result.Base = filepath.ToSlash(dir)
	}
	today := time.Now()
	f.compare(&result, today)
	for _, o := range f.outs {
		if whole {
			if err := f.prints(o.form)(o.w, &result); err != nil {
				errs = append(errs, err)
				o.file.end(false)
				continue
			}
		}
		errs = append(errs, o.file.end(whole))
	}
	if whole {
		errs = append(errs, f.judge(&result, sound, diag, today))
	}
	return errs
}

// errNoFindings is the error for an input that has no errors of a program.
var errNoFindings = errors.New("a profile of Callgrind has no findings: use another --output, or symfilter callgrind with --diff or --limit")
