package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/sandbox"
	"github.com/symfilter/symfilter/internal/wording"
)

// runDoctor checks the folders and servers of debug files. For a build ID, an ELF file or a log, it
// also searches for debug files. The exit code is 1 if a folder or server is unusable, or a debug
// file is missing. With --report, only an error changes the code.
func runDoctor(c *config, args []string, std standard) (int, error) {
	if c.which != "" {
		return c.whichBuild(args, std)
	}
	var about doctor.Subject
	if len(args) > 0 {
		var err error
		if about, err = subjectOf(args[0]); err != nil {
			return exitIO, err
		}
	}
	if err := c.openMaps(); err != nil {
		return exitIO, err
	}
	c.examining, c.quiet = true, true // the examination prints all problems itself
	s, err := c.session(std)
	if err != nil {
		return exitUsage, err
	}
	defer s.close()

	if err := c.checkWritten(args, std); err != nil {
		return exitUsage, err
	}
	report, err := s.openReport(std)
	if err != nil {
		return exitIO, err
	}
	defer report.discard()
	x := &doctor.Examination{Search: s.search(), W: std.text, Wait: max(waitFile, c.wait.Duration)}
	if report != nil {
		x.W = report.private
	}
	if err := s.examineAll(x, &about, args, std.in, report); err != nil {
		return exitIO, err
	}
	switch {
	case report != nil:
		if err := report.end(); err != nil {
			return exitIO, err
		}
	case x.Bad > 0:
		return exitIO, nil
	}
	return exitOK, nil
}

// examineAll lets x examine the folders, the servers and the arguments. The process is confined
// before anything of unknown origin is read.
func (s *session) examineAll(x *doctor.Examination, about *doctor.Subject, args []string, in *os.File, report *doctorReport) error {
	ctx, c := context.Background(), s.c
	x.Cache(s.servers)
	if about.Word != "" && len(c.urls) > 0 {
		sandbox.MakeFolder(c.downloads) // impossible once the doctor is confined
	}
	confined := c.confine(s.diag, args, false) // with the rights of a run
	x.Sandbox(confined.String(), len(confined.Missing) == 0)
	if err := about.Examine(); err != nil {
		return err
	}
	x.Folders(ctx)
	x.Servers(ctx, s.servers, about.ID)
	if about.Core {
		x.CoreFile(about)
	} else if about.Word != "" {
		if err := s.openSymbols(); err != nil {
			return err
		}
		x.Search = s.search()
		if about.ELF {
			x.Program(ctx, about)
		}
		if about.ELF || !about.ID.IsZero() {
			x.Find(ctx, about)
		} else if err := s.examineLog(ctx, x, about, in, report); err != nil {
			return err
		}
	}
	return nil
}

// examineLog filters a log, report or profile without output, and lets x examine its modules. It
// fails if the log cannot be read, or a flag is unusable.
func (s *session) examineLog(ctx context.Context, x *doctor.Examination, about *doctor.Subject, in *os.File, report *doctorReport) error {
	label := standardName
	if about.Path != "" {
		label = about.Word
		var err error
		if in, err = os.Open(about.Path); err != nil {
			return fmt.Errorf("open %s: %w", label, wording.Cause(err))
		}
		defer in.Close()
	}
	ctx, cancel := context.WithTimeout(ctx, x.Wait)
	defer cancel()
	found, hint, err := s.examine(ctx, in, label, report.printer())
	if err != nil {
		return err
	}
	if report != nil {
		label = nameInReport
		report.hide(s, &found)
	}
	x.Log(ctx, label, found, hint(label))
	report.print()
	return nil
}

// examine filters an input without output, and returns the counts of unresolved addresses. hint
// returns advice if nothing was resolved, or "". printer may be nil.
func (s *session) examine(ctx context.Context, in *os.File, label string, printer filter.Printer) (found doctor.Counts, hint func(label string) string, err error) {
	c := s.c
	prefixes, err := c.prefixMaps()
	if err != nil {
		return found, nil, err
	}
	biases, err := c.biases()
	if err != nil {
		return found, nil, err
	}
	regular := false
	if info, err := in.Stat(); err == nil {
		regular = info.Mode().IsRegular()
	}
	dialects, err := c.dialects(regular)
	if err != nil {
		return found, nil, err
	}
	var sum doctor.Sum
	dialects.Complete, dialects.Taken = s.Complete, sum.Take
	c.output = outputText
	o := filter.Options{
		Symbolizer: s.Symbolizer,
		Context:    ctx,
		ProcessKey: c.process.Regexp,
		Patience:   c.wait.of(true),
		Dialects:   dialects,
		Printer:    printer,
		Color:      filter.ColorNever,
	}
	at := &arrival{in: in, label: label, batch: &batch{w: io.Discard}, add: sum.Add, diagnose: func(string) {}, options: o}
	at.filter = filter.New(at.batch, o)
	r := newReports(c, s.Symbolizer, biases, prefixes)
	r.output = outputText
	e := r.engine(c.inputFormat(), at)
	_, err = io.Copy(e, in)
	err = cmp.Or(err, e.Close())
	sum.Add(doctor.CountsOf(at.filter))
	if _, read := errors.AsType[*os.PathError](err); read {
		return found, nil, errors.New(readError(label, err))
	} else if err != nil {
		return found, nil, fmt.Errorf("%s: %w", label, err)
	}
	return sum.All(), e.hint, nil
}
