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

// nameInReport replaces the name of the log in a report: the name may be private.
const nameInReport = "LOG"

// A doctorReport is the output of doctor --report. It is nil without the flag.
type doctorReport struct {
	file    *outputFile // nil: standard output
	private *bundle.Redactor
	log     bundle.Log
}

// openReport begins the report of --report, before the process is confined. It returns nil without
// the flag.
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
	places := []string{c.downloads, symfilter.DebugDir, doctor.CacheOf(s.servers).Dir}
	for _, p := range s.search().Places() {
		places = append(places, p.Path)
	}
	r.private = bundle.NewRedactor(w, os.Getenv("HOME"), places)
	fmt.Fprintf(r.private, "report of symfilter %s, %s, %s, %s\n", startup.Version(), runtime.GOOS, runtime.GOARCH, runtime.Version())
	return r, nil
}

// printer returns the printer that collects the lines of the log; nil without a report.
func (r *doctorReport) printer() filter.Printer {
	if r == nil {
		return nil
	}
	return &r.log
}

// hide registers the names that the report must redact: the names of the log's modules, and the
// paths of the files found or searched for them.
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

// print prints the collected facts about the log.
func (r *doctorReport) print() {
	if r != nil {
		r.log.PrintTo(r.private)
	}
}

// end completes a report, and gives the report's file its name.
func (r *doctorReport) end() error { return r.file.end(true) }

func (r *doctorReport) discard() {
	if r != nil && r.file != nil {
		r.file.discard()
	}
}
