package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync/atomic"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/input"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/internal/unpack"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
	"github.com/symfilter/symfilter/valgrind"
)

// inputOf returns the input format that an output of this form requires, or "".
func inputOf(form string) string {
	if form == outputCallgrind || form == outputRTrace || form == outputValgrind { // a profile or a report, with names
		return form
	}
	return ""
}

// inputName returns the name of the input's format, from --input or from an output that requires a
// format.
func (c *config) inputName() string {
	if c.input == "" || c.input == input.Auto.String() {
		if o := c.deciding(); o != nil {
			return inputOf(o.form)
		}
	}
	return c.input
}

// deciding returns the first output that determines the input's format, or nil.
func (c *config) deciding() *output {
	if i := slices.IndexFunc(c.outputs, func(o output) bool { return inputOf(o.form) != "" }); i >= 0 {
		return &c.outputs[i]
	}
	return nil
}

func (c *config) inputFormat() input.Format {
	return input.Format(max(slices.Index(input.Names(), c.inputName()), int(input.Auto)))
}

func (c *config) reading() doctor.Reading {
	r := doctor.Reading{Format: c.inputFormat(), Table: c.output != outputJSON && c.output != outputHTML && c.output != outputCallgrind}
	switch {
	case r.Format == input.Auto:
	case c.command != "":
		r.Because = "the command " + c.command
	case c.deciding() != nil && (c.input == "" || c.input == input.Auto.String()):
		r.Because = c.deciding().flag()
	default:
		r.Because = "--input=" + c.input
	}
	return r
}

// checkFormat returns an error if --output and --input contradict each other.
func (c *config) checkFormat() error {
	name := c.inputName()
	for _, o := range c.outputs {
		if need := inputOf(o.form); need != "" && need != name {
			return usageError{fmt.Errorf("%s needs --input=%s, not --input=%s", o.flag(), need, name)}
		}
	}
	return nil
}

// A reports makes translators. A translator is a writer that reads an input in its format, and
// prints it to the output or passes it to the filter.
type reports struct {
	output   string
	color    bool // in tables
	sym      *symbolize.Symbolizer
	prefixes []buildid.PrefixMap
	profiles *report.Budget // memory of all reports and profiles together
	packed   *unpack.Memory // memory for all compressed inputs together
	c        *config

	maps   []valgrind.Map // for Valgrind's reports
	joined *joinedProfile // nil: each profile is printed separately
	traced bool           // the output already has the stacks of a report of sp-rtrace
	folder *outputFolder  // for the documents of processes; nil: the output is a file
	found  *found         // receives the findings; nil: none
}

// newReports returns a reports with the fields that all pipelines have in common. Each pipeline
// completes a copy.
func newReports(c *config, sym *symbolize.Symbolizer, maps []valgrind.Map, prefixes []buildid.PrefixMap) reports {
	return reports{
		sym: sym, prefixes: prefixes, maps: maps, c: c,
		profiles: report.NewBudget(int64(c.maxMemory)/2, access.Symbolizer(sym).(report.Ledger)),
		packed:   unpack.NewMemory(int64(c.maxMemory) / 2),
	}
}

// options returns the options of all readers of reports.
func (r *reports) options(at *arrival) symbolize.ReportOptions {
	return symbolize.ReportOptions{
		Symbolizer: r.sym,
		Elements:   r.output == outputMarkup,
		Sysroot:    r.c.sysroot,
		PrefixMap:  r.prefixes,
		Basenames:  r.c.basenames,
		NoPaths:    r.c.noPaths,
		Filter:     at.filter,
		Memory:     r.profiles,
		Members:    at.members,
		Diagnose:   at.diagnose,
		Named:      func(n int64) { at.add(doctor.Counts{Asked: n}) },
		Unresolved: func(all []symbolize.Unresolved) { at.add(doctor.CountsOfReport(all)) },
	}
}

// An arrival is an input, with the data that its translator needs: the label, the filter, the batch
// for output, and the functions for diagnostics and counts.
type arrival struct {
	in       *os.File
	label    string
	diagnose func(string)             // reports diagnostics; may be nil
	damaged  func(*input.UnpackError) // nil: the error of Close reports it
	filter   *filter.Filter           // filters a log; for markup it writes to batch
	lines    *filter.Lines            // replaces filter with --reply; else nil
	options  filter.Options           // options of filter
	batch    *batch
	// reading was stopped before the end; atomic, since another goroutine may be unpacking then
	cut      atomic.Bool
	silent   bool                // another pipeline reports the same
	unpacked bool                // do not unpack the input, even if it looks compressed
	members  []byte              // to add to each JSON object
	add      func(doctor.Counts) // adds unresolved addresses that did not pass through filter
}

// hint returns advice if nothing was resolved, or "".
func (e engine) hint(label string) string {
	if label == standardName {
		label = "FILE"
	}
	return e.sniffer.Hint(label, e.input.Packed())
}

// engine returns the engine for one input. The engine recognizes the format by the first bytes.
func (r *reports) engine(format input.Format, at *arrival) engine {
	sniffed := &doctor.Sniffer{Reading: r.c.reading(), Lines: at.unpacked}
	t := input.Translators{
		Markup: func() io.WriteCloser { return at.filter },
		Container: func(f input.Format) io.WriteCloser {
			if r.c.reply {
				return r.replies(at)
			}
			e := input.NewEnvelope(f, at.options, at.batch.w, r.c.fields...)
			if len(r.c.keys) > 0 {
				e.KeyBy(r.c.keys...)
			}
			at.filter = e.Filter()
			return e
		},
		Valgrind:  func() io.WriteCloser { return r.valgrind(at) },
		Callgrind: func() io.WriteCloser { return r.callgrind(at) },
		RTrace:    func() io.WriteCloser { return r.rtrace(at) },
		Encoded:   at.encoded,
		Text:      sniffed.Look,
		Damaged:   at.damaged,
		Memory:    r.packed,
		Unpacked:  at.unpacked,
		Fields:    r.c.fields,
	}
	if isStacked(r.output) {
		r.onlyStacks(&t)
	}
	w := input.New(format, t)
	return engine{
		WriteCloser: w,
		flush:       w.Flush,
		unfinished:  w.Unfinished,
		input:       w,
		sniffer:     sniffed,
	}
}

// replies returns the translator that answers lines of JSON.
func (r *reports) replies(at *arrival) io.WriteCloser {
	o := at.options
	o.Display, o.Color = filter.Display{}, filter.ColorKeep // the replies go to another program
	reply := input.NewReply(o, at.batch.w, r.c.keys, r.c.fields)
	at.lines = reply.Lines()
	return reply
}

func (at *arrival) encoded(e input.Encoding) {
	if at.diagnose != nil {
		at.diagnose(encodingHint(e, at.label))
	}
}

// asMarkup returns a translator to markup. The markup goes to the output with --output=markup, and
// to the filter without it.
func (r *reports) asMarkup(at *arrival, translate func(dst markup.Sink) io.WriteCloser) io.WriteCloser {
	if r.output == outputMarkup {
		w := markup.NewWriter(at.batch.w)
		return translation{translate(w), w, w.Flush}
	}
	at.batch.on = true
	blocks := access.Filter(at.filter).(interface{ EndBlock() })
	return translation{translate(at.filter), at.filter, func() error {
		blocks.EndBlock()
		return at.batch.Flush()
	}}
}

type translation struct {
	io.WriteCloser
	sink  io.Closer
	flush func() error // writes the text in the sink; called after each block
}

func (t translation) Write(p []byte) (int, error) {
	n, err := t.WriteCloser.Write(p)
	if err == nil {
		err = t.flush()
	}
	return n, err
}

func (t translation) Close() error {
	return errors.Join(t.WriteCloser.Close(), t.sink.Close(), t.flush())
}

// harmless returns the writer that report returns for the output. On a terminal, unless --raw is
// given, control characters in the written report are shown as text.
func (at *arrival) harmless(report func(io.Writer) io.WriteCloser) io.WriteCloser {
	if !at.options.Terminal {
		return report(at.batch.w)
	}
	w := escape.NewWriter(at.batch.w)
	return escaped{report(w), w}
}

type escaped struct {
	io.WriteCloser
	w *escape.Writer
}

func (e escaped) Close() error { return errors.Join(e.WriteCloser.Close(), e.w.Close()) }

// A batch collects text while on is set, and writes it at a flush or when it has batchSize bytes.
// Otherwise each frame from a translator would be a separate write.
type batch struct {
	w    io.Writer
	on   bool
	data []byte
}

const batchSize = 64 << 10 // bytes

func (b *batch) Write(p []byte) (int, error) {
	if !b.on {
		return b.w.Write(p)
	}
	b.data = append(b.data, p...)
	if len(b.data) >= batchSize {
		return len(p), b.Flush()
	}
	return len(p), nil
}

func (b *batch) Flush() error {
	if len(b.data) == 0 {
		return nil
	}
	_, err := b.w.Write(b.data)
	b.data = b.data[:0]
	return err
}
