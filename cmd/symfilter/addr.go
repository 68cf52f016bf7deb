package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/doctor"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// runAddr prints the functions and lines at addresses of one file.
func runAddr(c *config, args []string, std standard) (int, error) {
	prefixes, err := c.prefixMaps()
	if err != nil {
		return exitUsage, err
	}
	var addrs []uint64
	for _, word := range args[1:] {
		addr, err := parseAddress(word)
		if err != nil {
			return exitUsage, err
		}
		addrs = append(addrs, addr)
	}
	of, err := subjectOf(args[0])
	if err != nil {
		return exitIO, err
	}
	s, err := c.session(std)
	if err != nil {
		return exitIO, err
	}
	defer s.close()
	if err := s.open([]string{of.Path}); err != nil {
		return exitIO, err
	}
	s.warn(false)
	if err := of.Examine(); err != nil {
		return exitIO, err
	}
	if err := of.NotProgram(); err != nil {
		return exitIO, err
	}
	ctx, cancel := context.WithTimeout(context.Background(), c.wait.of(true).Local)
	defer cancel()

	a := addresses{
		session: s, ctx: ctx, of: of,
		shown: report.Options{PrefixMap: prefixes, Basenames: c.basenames},
		json:  c.output == outputJSON,
	}
	if a.own, err = findings.NewOwn(c.frames.rules); err != nil {
		return exitUsage, err
	}
	if a.sources, err = c.sources(s.Symbolizer, s.servers, prefixes, false, s.diag); err != nil {
		return exitUsage, err
	}
	defer a.sources.close()
	terminal := isTerminal(std.out)
	a.links = c.source.hyperlinks(terminal, c.color.mode(terminal, os.Getenv), os.Getenv)
	var unresolved doctor.Sum
	// Counts for addresses outside of the file. They are added last, because a Sum keeps the last
	// reason for a module.
	var last []doctor.Counts
	for _, addr := range addrs {
		out, found, err := a.answer(addr)
		if !found {
			c := doctor.Counts{Modules: []symbolize.Unresolved{of.Unresolved(1, err)}, Failed: 1}
			if _, outside := errors.AsType[*doctor.OutsideError](err); outside {
				last = append(last, c)
			} else {
				unresolved.Add(c)
			}
		}
		if _, err := std.text.Write(out); err != nil {
			return exitIO, nil // run reports the error
		}
	}
	for _, c := range last {
		unresolved.Add(c)
	}
	s.status.set("")
	c.explain = c.explain || !c.quiet
	sum := unresolved.All()
	s.report(sum, false)
	if c.strict && sum.Failed > 0 {
		return exitStrict, nil
	}
	return exitOK, nil
}

// subjectOf returns the subject that word names.
func subjectOf(word string) (doctor.Subject, error) {
	s, err := doctor.SubjectOf(word)
	if mistake, ok := errors.AsType[doctor.WordError](err); ok {
		err = usageError{mistake}
	}
	return s, err
}

// parseAddress parses hex digits, with or without 0x.
func parseAddress(word string) (uint64, error) {
	digits := word
	if len(word) > 2 && (word[:2] == "0x" || word[:2] == "0X") {
		digits = word[2:]
	}
	addr, err := strconv.ParseUint(digits, 16, 64)
	if errors.Is(err, strconv.ErrRange) {
		return 0, usageError{fmt.Errorf("the address %s has more than 64 bits", word)}
	}
	if err != nil {
		return 0, usageError{fmt.Errorf("%q is not an address: write hex digits, such as 0x1a25", word)}
	}
	return addr, nil
}

// addresses prints the answers for addresses of one subject.
type addresses struct {
	*session
	ctx   context.Context
	of    doctor.Subject
	shown report.Options
	json  bool

	own     *findings.Own
	sources *sourceText
	links   bool // files and lines are hyperlinks
}

// answer returns the output for the module-relative address addr, and whether a name was found. If
// no name was found, err is the reason. If no symbol covers the address, err is nil.
func (a *addresses) answer(addr uint64) (out []byte, found bool, err error) {
	frames, err := a.Symbolizer.Ask(a.ctx, nil, a.of.Location(addr), symbolize.Policy{})
	recorded := frames
	frames = slices.Clone(frames)
	for i := range frames {
		frames[i].File = a.shown.ShownFile(frames[i].File)
	}
	v := a.variable(addr, frames, err)
	if v != nil {
		frames = nil
	}
	found = len(frames) > 0 || v != nil
	switch {
	case found:
		err = nil
	case err == nil:
		err = a.of.Outside(a.Symbolizer, addr)
	}
	if a.json {
		return a.object(addr, frames, v, err), found, err
	}
	return a.text(addr, frames, recorded, v, err), found, err
}

// variable returns the variable at addr, or nil if there is none. It also returns nil if the frames
// are as good: the innermost frame has a file, or no member of the variable is known.
func (a *addresses) variable(addr uint64, frames []symbolize.Frame, err error) *symbolize.Variable {
	if err != nil || len(frames) > 0 && frames[0].File != "" {
		return nil
	}
	v, err := a.Symbolizer.AskData(a.ctx, a.of.Location(addr), symbolize.Policy{})
	if err != nil || len(frames) > 0 && v.Member == "" {
		return nil
	}
	return &v
}

// text returns an answer as addr2line -a -i -f -p prints it, with source lines below the frames.
// recorded holds the same frames, with the files as debug information names them.
func (a *addresses) text(addr uint64, frames, recorded []symbolize.Frame, v *symbolize.Variable, err error) []byte {
	b := fmt.Appendf(nil, "0x%x: ", addr)
	switch {
	case v != nil:
		b = escape.AppendText(b, variableText(v), "")
	case len(frames) == 0:
		b = escape.AppendText(b, "?? ("+reason(err)+")", "")
	}
	for i := range frames {
		if i > 0 {
			b = append(b, "\n (inlined by) "...)
		}
		function, line := frameText(&frames[i])
		b = escape.AppendText(b, function, "")
		b = a.appendLink(b, line, addr, &recorded[i])
		b = a.appendSource(b, addr, &recorded[i])
	}
	return append(b, '\n')
}

// appendLink appends the file and line of a frame, with a link if they have one.
func (a *addresses) appendLink(b []byte, line string, addr uint64, recorded *symbolize.Frame) []byte {
	linked := false
	if a.links && a.sources.linker != nil {
		start := len(b)
		if b, linked = a.sources.linker.Append(append(b, "\x1b]8;;"...), a.of.Location(addr), recorded); linked {
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

// appendSource appends the source lines of a frame, if it is in the program's own code.
func (a *addresses) appendSource(b []byte, addr uint64, recorded *symbolize.Frame) []byte {
	if a.sources.finder == nil || !a.own.Is(report.LinkName(recorded), recorded.File, a.of.Path) {
		return b
	}
	s := a.sources.finder.Snippet(a.of.Location(addr), recorded)
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

// reason returns why an address has no name.
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

// frameText returns the name of a function, with the offset if the line is not known, and the text
// for the line.
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

// variableText returns the name of a variable, with the member or the offset in the variable.
func variableText(v *symbolize.Variable) string {
	switch {
	case v.Member != "":
		return v.Name + v.Member
	case v.Offset != 0:
		return fmt.Sprintf("%s+0x%x", v.Name, v.Offset)
	}
	return v.Name
}

// object returns an answer as a JSON object, as addr.schema.json describes.
func (a *addresses) object(addr uint64, frames []symbolize.Frame, v *symbolize.Variable, err error) []byte {
	var b jsonout.Buffer
	b.Line()
	if a.of.Path != "" {
		b.String("module", a.of.Word)
	}
	b.BuildID(a.of.ID)
	b.Hex("offset", addr)
	switch {
	case v != nil:
		b.Object("variable")
		b.Variable(v)
		b.EndObject()
	case len(frames) > 0:
		b.Frames(frames)
	default:
		b.Reason(err)
	}
	b.EndLine()
	return b
}
