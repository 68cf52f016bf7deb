package rtrace

import (
	"strconv"
	"strings"
	"time"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// An answerer looks up frames with the symbolizer, and caches the answers.
type answerer struct {
	*report.Asker
	cached map[place]*answer
	now    time.Time // time of the current block
}

// place is an address in the code of a file.
type place struct {
	file *file
	rel  uint64
}

// answer holds the symbolizer's frames for a place, and their printed forms.
type answer struct {
	report.Answer

	text [][]byte       // text after the address in a report, a line for each frame
	json jsonout.Buffer // frames as JSON; empty until printed
}

func newAnswerer(o *report.Options) *answerer {
	return &answerer{Asker: report.NewAsker(o), cached: make(map[place]*answer)}
}

// ask returns the answer for s, from the cache if possible. s must be usable.
func (a *answerer) ask(s site) *answer {
	k := place{s.at.file, s.rel}
	if known := a.cached[k]; known != nil && (known.Until.IsZero() || a.now.Before(known.Until)) {
		return known
	}
	got := &answer{Answer: a.Frames(nil, k.file.Object, k.rel)}
	if got.Kept {
		if len(a.cached) >= maxAnswers {
			clear(a.cached)
		}
		a.cached[k] = got
	}
	return got
}

// better reports whether the answer should replace the report's text for rec. The answer must have
// a function or a source file. If the last line of the report's text has a source file, the answer
// must have one too.
func (a *answer) better(rec *record) bool {
	named, lined := false, false
	for i := range a.Frames {
		f := &a.Frames[i]
		named = named || f.Func != ""
		lined = lined || f.File != ""
	}
	if !named && !lined {
		return false
	}
	return lined || len(rec.Reported) == 0 || parseSymbol(rec.Reported[len(rec.Reported)-1]).file == nil
}

// lines returns the text after the address in a report, a line for each frame.
func (a *answer) lines(o *Options, module string) [][]byte {
	if a.text == nil {
		for i := range a.Frames {
			a.text = append(a.text, o.line(&a.Frames[i], module))
		}
	}
	return a.text
}

// line returns the text after the address of a frame in a report. An unknown function is left out:
//
//	in main() at a.c:12
//	in memcpy() from /lib/libc.so.6
//	at a.c:12
func (o *Options) line(f *symbolize.Frame, module string) (b []byte) {
	if name := report.FuncName(o.Symbolizer, f); name != "" {
		b = escape.AppendText(append(b, " in "...), name, "")
		if !hasParameters(name) {
			b = append(b, "()"...)
		}
	}
	if f.File != "" {
		b = escape.AppendText(append(b, " at "...), o.report().ShownFile(f.File), "")
		return strconv.AppendUint(append(b, ':'), uint64(f.Line), 10)
	}
	return fromModule(b, module)
}

func fromModule(b []byte, module string) []byte {
	return escape.AppendText(append(b, " from "...), module, "")
}

// hasParameters reports whether a demangled name ends with parameters, as in "f(int) const".
// Other parentheses do not count, as in "(anonymous namespace)::f" and "call<(A,)>".
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

// isWordAt reports whether text[from:to] is not part of a longer word.
func isWordAt(text string, from, to int) bool {
	inWord := func(c byte) bool {
		return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' || c == '_' || c >= 0x80
	}
	return (from == 0 || !inWord(text[from-1])) && (to == len(text) || !inWord(text[to]))
}
