package rtrace

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/symbolize"
)

// An answerer asks the symbolizer for frames. Its answers are kept.
type answerer struct {
	o       *Options
	known   map[place]*answer
	none    answer
	expired context.Context
	began   map[*file]time.Time // when it was named first
	now     time.Time           // as of the block at work
}

// place is a place in the code of a file.
type place struct {
	file *file
	rel  uint64
}

// answer is what a place is, by the symbolizer.
type answer struct {
	frames []symbolize.Frame
	err    error
	until  time.Time // the end of its use; zero: none

	text [][]byte // what stands behind the address in a report, a line for each frame
	json []byte   // the members of a site
}

func newAnswerer(o *Options) *answerer {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return &answerer{o: o, known: make(map[place]*answer), expired: ctx, began: make(map[*file]time.Time)}
}

// ask returns the frames of a site whose place is known.
func (a *answerer) ask(s site) *answer {
	k := place{s.at.file, s.rel}
	if known := a.known[k]; known != nil && (known.until.IsZero() || a.now.Before(known.until)) {
		return known
	}
	if a.o.Symbolizer == nil {
		return &a.none
	}
	l := symbolize.Location{ID: k.file.id, Name: k.file.path, Addr: k.rel}
	frames, err := a.o.Symbolizer.Code(a.expired, nil, l)
	if errors.Is(err, symbolize.ErrPending) {
		frames, err = a.wait(k.file, l, frames)
	}
	keep := err == nil
	if len(frames) > 0 && errors.Is(err, symbolize.ErrPending) {
		err = nil
	}
	got := &answer{frames: frames, err: err}
	for i := range frames {
		if until := frames[i].Until; !until.IsZero() && (got.until.IsZero() || until.Before(got.until)) {
			got.until = until
		}
	}
	if keep {
		if len(a.known) >= maxAnswers {
			clear(a.known)
		}
		a.known[k] = got
	}
	return got
}

// begin starts to look for the debug file of a file, once: the patience with it
// counts from here, so that waiting for several costs the time of one.
func (a *answerer) begin(f *file) {
	if _, ok := a.began[f]; ok || a.o.Symbolizer == nil {
		return
	}
	a.began[f] = time.Now()
	a.o.Symbolizer.Prefetch(f.id, f.path)
}

// wait asks until the patience with the file is over.
func (a *answerer) wait(f *file, l symbolize.Location, frames []symbolize.Frame) ([]symbolize.Frame, error) {
	a.begin(f)
	ctx, cancel := context.WithDeadline(a.o.context(), a.began[f].Add(a.o.Wait))
	defer cancel()
	if ctx.Err() != nil {
		return frames, symbolize.ErrPending
	}
	return a.o.Symbolizer.Code(ctx, nil, l)
}

// better reports whether an answer says more of a frame than the report does:
// one without a line does not where the report has one.
func (a *answer) better(rec *Record) bool {
	named, lined := false, false
	for i := range a.frames {
		f := &a.frames[i]
		named = named || f.Func != ""
		lined = lined || f.File != ""
	}
	if !named && !lined {
		return false
	}
	return lined || len(rec.Said) == 0 || parseSaid(rec.Said[len(rec.Said)-1]).file == nil
}

// lines returns what stands behind the address in a report, a line for each
// frame.
func (a *answer) lines(o *Options, module string) [][]byte {
	if a.text == nil {
		for i := range a.frames {
			a.text = append(a.text, o.line(&a.frames[i], module))
		}
	}
	return a.text
}

// line returns a frame in the words of a report:
//
//	main() at a.c:12
//	memcpy() from /lib/libc.so.6
func (o *Options) line(f *symbolize.Frame, module string) []byte {
	name := o.name(f)
	b := escape.AppendText(nil, name, "")
	switch {
	case name == "":
		b = append(b, "??"...)
	case !hasParameters(name):
		b = append(b, "()"...)
	}
	if f.File != "" {
		b = escape.AppendText(append(b, " at "...), o.source(f.File), "")
		return strconv.AppendUint(append(b, ':'), uint64(f.Line), 10)
	}
	return escape.AppendText(append(b, " from "...), module, "")
}

// name returns the name of a function as it is shown: without the version that
// a library's symbols may have.
func (o *Options) name(f *symbolize.Frame) string {
	if f.FromSymbol && o.Symbolizer != nil {
		for i := 1; i < len(f.Linkage) && f.Linkage[0] != '?'; i++ {
			if f.Linkage[i] == '@' {
				return o.Symbolizer.Demangle(f.Linkage[:i])
			}
		}
	}
	return f.Func
}

// source returns the name of a source file as it is shown.
func (o *Options) source(path string) string {
	path, _ = o.mapped(path)
	if o.Basenames {
		path = path[strings.LastIndexByte(path, '/')+1:]
	}
	return path
}

// hasParameters reports whether a demangled name ends with its parameters, and
// not with what it is called: "f(int) const", but not "(anonymous
// namespace)::f", nor "call<(A,)>".
func hasParameters(name string) bool {
	name = strings.ReplaceAll(name, "(anonymous namespace)", "")
	depth := 0
	for i := range len(name) {
		switch name[i] {
		case '<', '{', '[':
			depth++
		case '>', '}', ']':
			depth--
		case '(':
			if depth <= 0 {
				return true
			}
		case 'o':
			if rest, ok := strings.CutPrefix(name[i:], "operator"); ok && depth <= 0 && isWordAt(name, i, len(name)-len(rest)) {
				return strings.Contains(strings.TrimPrefix(rest, "()"), "(")
			}
		}
	}
	return false
}

// isWordAt reports whether text[from:to] is no part of a longer word.
func isWordAt(text string, from, to int) bool {
	inWord := func(c byte) bool {
		return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c >= 0x80
	}
	return (from == 0 || !inWord(text[from-1])) && (to == len(text) || !inWord(text[to]))
}
