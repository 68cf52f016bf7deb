package main

import (
	"fmt"
	"io"
	"os"
	"runtime"

	"github.com/symfilter/symfilter"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/bundle"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/startup"
)

// standardOutput is the value of --report without a FILE.
const standardOutput = "-"

// nameInReport stands for the name of the log in a report, which may be private.
const nameInReport = "LOG"

// A doctorReport is the output of doctor --report. A nil one is that of doctor without it.
type doctorReport struct {
	file    *outputFile // nil: standard output
	private *bundle.Redactor
	log     bundle.Log
}

// openReport begins the report that --report asks for; nil without the flag. The process must not
// be confined yet.
func (s *session) openReport(std standard) (*doctorReport, error) {
	c := s.c
	if c.report == "" {
		return nil, nil
	}
	r := new(doctorReport)
	var w io.Writer = std.text
	if c.report != standardOutput {
		var err error
		if r.file, err = openOutput(string(c.report)); err != nil {
			return nil, fmt.Errorf("--report: %w", err)
		}
		w = r.file
	}
	places := []string{c.downloads, symfilter.DebugDir, s.servers.Cache().Info().Dir}
	for _, p := range s.search().Places() {
		places = append(places, p.Path)
	}
	r.private = bundle.NewRedactor(w, os.Getenv("HOME"), places)
	fmt.Fprintf(r.private, "report of symfilter %s, %s, %s, %s\n", startup.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return r, nil
}

// printer returns what collects the lines of the log; nil without a report.
func (r *doctorReport) printer() filter.Printer {
	if r == nil {
		return nil
	}
	return &r.log
}

// hide has the names in a log, and the files that they have led to, redacted.
func (r *doctorReport) hide(s *session, found *doctor.Counts) {
	for i := range found.Modules {
		r.private.Hide(found.Modules[i].Name, found.Modules[i].Candidate)
	}
	for _, m := range s.Symbolizer.Reports() {
		r.private.Hide(m.Name, m.Path)
		for _, a := range m.Attempts {
			r.private.Hide(a.Where)
		}
	}
}

// print prints what was collected of the log.
func (r *doctorReport) print() {
	if r != nil {
		r.log.PrintTo(r.private)
	}
}

// end ends a report that is complete. Its file gets its name.
func (r *doctorReport) end() error { return r.file.end(true) }

// discard removes the file of a report that was not ended.
func (r *doctorReport) discard() {
	if r != nil && r.file != nil {
		r.file.discard()
	}
}
