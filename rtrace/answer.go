package rtrace

import (
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// An answerer asks the symbolizer for frames. Its answers are kept.
type answerer struct {
	*report.Asker
	known map[place]*answer
	now   time.Time // as of the current block
}

// place is a place in the code of a file.
type place struct {
	file *file
	rel  uint64
}

// answer is what a place is, by the symbolizer.
type answer struct {
	report.Answer

	text [][]byte       // after the address in a report, a line for each frame
	json jsonout.Buffer // frames, once they were printed
}

func newAnswerer(o *report.Options) *answerer {
	return &answerer{Asker: report.NewAsker(o), known: make(map[place]*answer)}
}

// ask returns the frames of a site whose place is known.
func (a *answerer) ask(s site) *answer {
	k := place{s.at.file, s.rel}
	if known := a.known[k]; known != nil && (known.Until.IsZero() || a.now.Before(known.Until)) {
		return known
	}
	got := &answer{Answer: a.Frames(nil, k.file.Object, k.rel)}
	if got.Kept {
		if len(a.known) >= maxAnswers {
			clear(a.known)
		}
		a.known[k] = got
	}
	return got
}

// better reports whether an answer says more of a frame than the report does:
// one without a line does not where the report has one.
func (a *answer) better(rec *Record) bool {
	named, lined := false, false
	for i := range a.Frames {
		f := &a.Frames[i]
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
		for i := range a.Frames {
			a.text = append(a.text, o.line(&a.Frames[i], module))
		}
	}
	return a.text
}

// line returns a frame in the words of a report:
//
//	main() at a.c:12
//	memcpy() from /lib/libc.so.6
func (o *Options) line(f *symbolize.Frame, module string) []byte {
	name := report.FuncName(o.Symbolizer, f)
	b := escape.AppendText(nil, name, "")
	switch {
	case name == "":
		b = append(b, "??"...)
	case !hasParameters(name):
		b = append(b, "()"...)
	}
	if f.File != "" {
		b = escape.AppendText(append(b, " at "...), o.ShownFile(f.File), "")
		return strconv.AppendUint(append(b, ':'), uint64(f.Line), 10)
	}
	return escape.AppendText(append(b, " from "...), module, "")
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
