package main

import (
	"errors"
	"io"
	"os"
	"slices"
	"syscall"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/faults"
	"github.com/symfilter/symfilter/internal/follow"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/page"
	"github.com/symfilter/symfilter/internal/wording"
)

// A pipeline makes one output of a run. It has an engine for each input. All pipelines share the
// caches of lookups.
type pipeline struct {
	form    string
	c       *config // the run's config with this form as its only output
	w       io.Writer
	file    *outputFile   // file of w; nil: standard output
	folder  *outputFolder // replaces w if the output is a folder; else nil
	options filter.Options
	page    *page.Page // for HTML; else nil
	found   *found     // shared by outputs of findings; else nil
	reports *reports
	quiet   bool // no messages and counts: another pipeline reports the same
}

// shareCaches gives one Cache to all pipelines with equal settings for links and for shortened
// paths, since their frames look alike. The first pipeline uses the Cache of the run. If one
// pipeline marks own frames, all do, since cached frames have the mark.
func shareCaches(pipelines []*pipeline, maxMemory int64) {
	type cached struct{ clean, links bool }
	of := func(l *pipeline) cached { return cached{l.options.Paths.Clean, l.options.Paths.Hyperlinks} }
	caches := make(map[cached]*filter.Cache)
	var look filter.Display
	for _, l := range pipelines {
		if look.Own == nil {
			look.Own = l.options.Display.Own
		}
		if at := of(l); caches[at] == nil {
			if len(caches) > 0 {
				l.options.Cache = filter.NewCache(min(filter.DefaultCacheSize, maxMemory/16))
			}
			caches[at] = l.options.Cache
		}
	}
	for _, l := range pipelines {
		l.options.Cache = caches[of(l)]
		l.options.Display.Own = look.Own
	}
}

// engine returns the pipeline's engine for an input. The engine writes lines to w.
func (l *pipeline) engine(r *filterRun, in *os.File, label string, regular bool, w io.Writer) engine {
	o := l.options
	o.Patience = l.c.wait.of(regular)
	o.Dialects.Whole = regular && !l.c.follow.on
	if o.Dialects.Whole {
		if info, err := in.Stat(); err == nil {
			o.Dialects.Logged = info.ModTime
		}
	}
	at := &arrival{in: in, label: label, batch: &batch{w: w}, add: r.stream.unresolved.Add,
		diagnose: func(s string) { r.diag.printf("%s: %s", label, wording.Line(s)) },
	}
	o.Diagnose = func(d filter.Diagnostic) {
		if at.cut.Load() { // the rest of the last line was not read
			return
		}
		r.diag.printf("%s:%d:%d: %s", label, d.Line, d.Byte, d.Message)
	}
	if !l.c.explain { // the explanation at the end has the reason
		o.Dialects.Refused = func(path string, reason error) { r.diag.printf("%s: --image %s: %v", label, path, reason) }
	}
	if l.c.follow.on { // report faults at once: the end may come much later
		at.unpacked = !follow.IsArchive(label)
		at.damaged = func(e *input.UnpackError) { r.diag.sum("%s: %v", label, e) }
	}
	o.Dialects.Taken = r.stream.unresolved.Take
	if l.quiet {
		at.silent = true
		at.diagnose, at.add = func(string) {}, func(doctor.Counts) {}
		o.Diagnose, o.Dialects.Refused = nil, nil
	}
	if l.c.follow.on && l.c.output == outputJSON {
		at.members, _ = escape.AppendString([]byte(`"file":`), label)
		o.Members = func(dst []byte, _ int64) []byte { return append(append(dst, ','), at.members...) }
	}
	if l.page != nil && r.inputs > 1 {
		l.page.Input(label)
	}
	if l.found != nil {
		l.found.begin(r.stream.current)
		o.Printer = faults.NewFinder(l.found.Collection, label, l.found.own, o.Paths)
	}
	at.options, at.filter = o, filter.New(at.batch, o)
	format := l.c.inputFormat()
	e := l.reports.engine(format, at)
	e.cut = func() { at.cut.Store(true) }
	e.counts = func() doctor.Counts {
		if at.lines != nil {
			return doctor.CountsOf(at.lines)
		}
		return doctor.CountsOf(at.filter)
	}
	e.end = func() {
		if l.found != nil {
			l.found.ended(label, format == input.Valgrind || format == input.RTrace)
		}
		if l.quiet {
			return
		}
		r.stream.unresolved.Add(e.counts())
		if stats := at.filter.Stats(); l.c.process.Regexp != nil && stats.Elements > 0 && stats.Keyed == 0 {
			r.diag.sum("%s: --process-key matches no line with markup, so all lines count as one process", label)
		} else if len(l.c.keys) > 0 && !l.c.reply && stats.Elements > 0 && stats.Keyed == 0 {
			r.diag.sum("%s: no line with markup has a member that --json-key names, so all lines count as one process", label)
		}
	}
	return e
}

// end writes the part of the output after all inputs, and gives files their names. whole is set if
// all inputs were read; otherwise the files are discarded. sound is set if all inputs were
// readable. All errors are returned.
func (l *pipeline) end(whole, sound bool, diag *diagnostics) []error {
	l.folder.end()
	if l.found != nil {
		return l.found.end(whole, sound, diag)
	}
	if l.page != nil && whole {
		if _, err := l.w.Write(l.page.AppendRest(nil)); err != nil {
			return []error{err, l.file.end(false)}
		}
	}
	return []error{l.file.end(whole && !l.hasNoStacks())}
}

// allOf returns an engine that passes an input to several engines. It flushes and ends all engines.
// Other functions, such as hint and counts, are those of the first engine.
func allOf(engines []engine) engine {
	if len(engines) == 1 {
		return engines[0]
	}
	f := &tee{engines: engines, unread: make([]bool, len(engines))}
	e := engines[0]
	e.WriteCloser = f
	e.flush = func() error { return f.each(func(e *engine) error { return e.flush() }) }
	e.unfinished = func() bool {
		for i := range engines {
			if engines[i].unfinished() {
				return true
			}
		}
		return false
	}
	e.end = func() {
		for i := range engines {
			engines[i].end()
		}
	}
	return e
}

// A tee writes to several engines. If the reader of an output closes it, the other outputs
// continue.
type tee struct {
	engines []engine
	unread  []bool // for each engine: its output has no reader any more
}

// each calls the function do for each engine whose output has a reader, and returns the first
// error. It returns EPIPE only if no output has a reader.
func (f *tee) each(do func(*engine) error) error {
	for i := range f.engines {
		if f.unread[i] {
			continue
		}
		switch err := do(&f.engines[i]); {
		case errors.Is(err, syscall.EPIPE):
			f.unread[i] = true
		case err != nil:
			return err
		}
	}
	if !slices.Contains(f.unread, false) {
		return syscall.EPIPE
	}
	return nil
}

func (f *tee) Write(p []byte) (int, error) {
	return len(p), f.each(func(e *engine) error { _, err := e.Write(p); return err })
}

// Close closes all engines, including failed ones.
func (f *tee) Close() (err error) {
	for i := range f.engines {
		if e := f.engines[i].Close(); !f.unread[i] && !errors.Is(e, syscall.EPIPE) {
			err = errors.Join(err, e)
		}
	}
	return err
}
