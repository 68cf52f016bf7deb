package main

import (
	"errors"
	"fmt"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

func (a *addresses) print(l *located) {
	if a.json {
		a.out = append(a.out, l.object()...)
	} else {
		a.text(l)
	}
}

// text appends an answer in the form of addr2line -a -i -f -p, with source lines below the frames.
func (a *addresses) text(l *located) {
	b := append(l.appendPlace(a.out), ": "...)
	switch {
	case l.variable != nil:
		b = escape.AppendText(b, variableText(l.variable), "")
	case len(l.frames) == 0:
		b = escape.AppendText(b, "?? ("+reason(l.err)+")", "")
	}
	for i := range l.frames {
		if i > 0 {
			b = append(b, "\n (inlined by) "...)
		}
		function, line := frameText(&l.frames[i])
		b = escape.AppendText(b, function, "")
		b = a.appendLink(b, line, l, &l.recorded[i])
		b = a.appendSource(b, l, &l.recorded[i])
	}
	a.out = append(b, '\n')
}

// appendPlace appends the word of the request, if any. It adds the address or range that the word
// does not show, and in parentheses the doubt, if any.
func (l *located) appendPlace(b []byte) []byte {
	if l.word != "" || !l.hasAddr {
		b = escape.AppendText(b, l.word, "")
		if !l.hasAddr || !l.resolved && l.end == 0 {
			return b
		}
		b = append(b, " = "...)
	}
	b = fmt.Appendf(b, "0x%x", l.addr)
	if l.end != 0 {
		b = fmt.Appendf(b, "-0x%x", l.end)
	}
	if l.doubt != "" {
		b = fmt.Appendf(b, " (%s)", l.doubt)
	}
	return b
}

// appendLink appends line, the file and line of a frame. It makes the text a hyperlink if links are
// on and the linker has a target for the frame.
func (a *addresses) appendLink(b []byte, line string, l *located, recorded *symbolize.Frame) []byte {
	linked := false
	if a.links && a.sources.linker != nil {
		start := len(b)
		if b, linked = a.sources.linker.Append(append(b, "\x1b]8;;"...), l.module.Location(l.addr), recorded); linked {
			b = append(b, "\x1b\\"...)
		} else {
			b = b[:start]
		}
	}
	b = escape.AppendText(b, line, "")
	if linked {
		b = append(b, "\x1b]8;;\x1b\\"...)
	}
	return b
}

// appendSource appends the source lines of a frame in the program's own code.
func (a *addresses) appendSource(b []byte, l *located, recorded *symbolize.Frame) []byte {
	if a.sources.finder == nil || !a.own.Is(report.LinkName(recorded), recorded.File, l.module.Path) {
		return b
	}
	s := a.sources.finder.Snippet(l.module.Location(l.addr), recorded)
	for i, line := range s.Lines {
		number := s.First + uint32(i)
		var caret int
		b, caret = layout.AppendSourceLine(append(b, '\n'), number, line, recorded.Column)
		if number == recorded.Line && caret >= 0 {
			b = layout.AppendCaret(append(b, '\n'), number, caret)
		}
	}
	return b
}

func reason(err error) string {
	_, missing := errors.AsType[*symbolize.NotFoundError](err)
	switch {
	case err == nil:
		return "no symbol covers the address"
	case missing:
		return "no debug file"
	}
	return err.Error()
}

// frameText returns the function of a frame, and its file and line. If the file is unknown, the
// function includes the offset.
func frameText(f *symbolize.Frame) (function, line string) {
	function = f.Func
	if function == "" {
		function = "??"
	}
	switch {
	case f.File == "" && f.Offset != 0:
		function += fmt.Sprintf("+0x%x", f.Offset)
	case f.File != "":
		function += " at "
		line = fmt.Sprintf("%s:%d", f.File, f.Line)
		if f.Column != 0 {
			line += fmt.Sprintf(":%d", f.Column)
		}
	}
	return function, line
}

// variableText returns the name of a variable, with the member or offset.
func variableText(v *symbolize.Variable) string {
	switch {
	case v.Member != "":
		return v.Name + v.Member
	case v.Offset != 0:
		return fmt.Sprintf("%s+0x%x", v.Name, v.Offset)
	}
	return v.Name
}

// object returns an answer as a JSON object: see addr.schema.json.
func (l *located) object() []byte {
	var b jsonout.Buffer
	b.Line()
	if l.word != "" || l.module == nil {
		b.String("input", l.word)
	}
	if l.module != nil {
		if l.module.Path != "" {
			b.String("module", l.module.Word)
		}
		b.BuildID(l.module.ID)
	}
	if l.hasAddr {
		b.Hex("offset", l.addr)
	}
	if l.end != 0 {
		b.Hex("end", l.end)
	}
	b.Optional("doubt", l.doubt)
	if l.continues {
		b.Bool("continues", true)
	}
	switch {
	case l.variable != nil:
		b.Object("variable")
		b.Variable(l.variable)
		b.EndObject()
	case len(l.frames) > 0:
		b.Frames(l.frames)
	default:
		b.Reason(l.err)
	}
	b.EndLine()
	return b
}
