package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/input"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
	"github.com/symfilter/symfilter/valgrind"
)

// valgrindCommand is the subcommand for reports of Valgrind: --input=valgrind.
const valgrindCommand = "valgrind"

// withInput returns args without a subcommand that names a format, as flags do
// instead.
func withInput(args []string) []string {
	if len(args) > 0 && args[0] == valgrindCommand {
		return append([]string{"--input=" + args[0]}, args[1:]...)
	}
	return args
}

// inputFormat returns what --input says.
func (c *config) inputFormat() input.Format {
	for i, name := range input.Names() {
		if name == c.input {
			return input.Format(i)
		}
	}
	return input.Auto
}

// biases returns what --map and --bias say.
func (c *config) biases() (maps []valgrind.Map, err error) {
	for _, s := range c.biasWords {
		object, digits, ok := cutLast(s, "=")
		bias, err := strconv.ParseUint(digits, 0, 64)
		if !ok || object == "" || err != nil {
			return nil, usageError{fmt.Errorf("--bias %q: write OBJECT=0x…, the difference between the addresses in the process and in the file", s)}
		}
		maps = append(maps, valgrind.Bias(object, bias))
	}
	for _, name := range c.mapFiles {
		f, err := os.Open(name)
		if err != nil {
			return nil, fmt.Errorf("--map %s: %w", name, bare(err))
		}
		m, err := valgrind.ReadMap(f)
		f.Close()
		if err != nil {
			return nil, fmt.Errorf("--map %s: %w", name, err)
		}
		maps = append(maps, m)
	}
	return maps, nil
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// reports makes what translates reports of Valgrind.
type reports struct {
	options valgrind.Options
	output  string
}

func (c *config) reports(ctx context.Context, sym *symbolize.Symbolizer, maps []valgrind.Map, prefixes []filter.PrefixMap) *reports {
	r := &reports{output: c.output}
	r.options = valgrind.Options{Symbolizer: sym, Sysroot: c.sysroot, Maps: maps, Context: ctx}
	for _, p := range prefixes {
		r.options.PrefixMap = append(r.options.PrefixMap, valgrind.PrefixMap(p))
	}
	return r
}

// before returns an engine that recognises the format of one input when its
// first bytes have come: e, which is f, is for markup.
func (r *reports) before(e engine, format input.Format, in *os.File, label string, wait time.Duration, diag *diagnostics, f *filter.Filter, batch *batch) engine {
	w := input.New(format, input.Translators{
		Markup: func() io.WriteCloser {
			if r.output == outputMarkup {
				return passOn{batch.w}
			}
			return f
		},
		Valgrind: func() io.WriteCloser {
			o := r.options
			o.Wait = wait
			o.Diagnose = func(s string) { diag.printf("%s: %s", label, oneLine(s)) }
			o.Elements = r.output == outputMarkup
			o.Ahead = lookAhead(in, o)
			switch r.output {
			case outputJSON:
				return valgrind.NewReport(batch.w, r.options.Symbolizer, o)
			case outputMarkup:
				w := markup.NewWriter(batch.w)
				return translation{valgrind.NewMarkup(w, o), w, w.Flush}
			}
			batch.on = true
			return translation{valgrind.NewMarkup(f, o), f, batch.Flush}
		},
	})
	return engine{
		WriteCloser: w,
		flush:       e.flush,
		unfinished:  func() bool { return w.Format() == input.Markup && e.unfinished() },
		end:         e.end,
	}
}

// translation is a translator and the sink that it writes to.
type translation struct {
	io.WriteCloser
	sink  io.Closer
	flush func() error // of what the sink wrote, after each block
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

// A batch collects what is written to it between flushes, if it is on: a
// translator gives a filter a frame at a time, and each would be written.
type batch struct {
	w    io.Writer
	on   bool
	data []byte
}

const batchSize = 64 << 10 // bytes that are written at once

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

// Flush writes what has been collected.
func (b *batch) Flush() error {
	if len(b.data) == 0 {
		return nil
	}
	_, err := b.w.Write(b.data)
	b.data = b.data[:0]
	return err
}

// lookAhead reads what a report says of its objects, if it is a file; nil if it
// is not, or cannot be read: then its lines say so as they come.
func lookAhead(in *os.File, o valgrind.Options) *valgrind.Ahead {
	info, err := in.Stat()
	if err != nil || !info.Mode().IsRegular() {
		return nil
	}
	plain, err := input.Plain(io.NewSectionReader(in, 0, info.Size()))
	if err != nil {
		return nil
	}
	ahead, err := valgrind.ReadAhead(plain, o)
	if err != nil {
		return nil
	}
	return ahead
}
