package page

import (
	"bytes"
	"strconv"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/backtrace"
	"github.com/symfilter/symfilter/internal/faults"
	"github.com/symfilter/symfilter/internal/html"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/markup"
)

var newline = []byte{'\n'}

// A Page is an HTML page with the logs of one or several Filters, one after the other. It has
// the text of the logs, backtraces that fold, and an index of the distinct backtraces. The page
// needs no other file. Package internal/html describes its contents.
//
// A Page is the [filter.Printer] of its Filters. They print nothing until the page has 16 MiB;
// then they print its finished parts. Options.Emit may thus get the output of several lines at
// once. Lines of a backtrace are held until it ends, because equal backtraces are folded. A
// Page takes at most about 64 MiB of memory. One Filter at a time may use it.
type Page struct {
	html *html.Page

	backtrace.Grouping
	same verdicts
	dump bool // the last line is part of a dump, which folds

	values []html.Value // scratch
	rows   []html.Row   // scratch

	prefix func(dst []byte, line int64) []byte // see SetPrefix
	before prefixed
}

var _ filter.LogPrinter = (*Page)(nil)

// New returns a Page for the Filters that have it as their Printer. title is the page's title,
// usually the name of the log.
func New(title string) *Page { return &Page{html: html.New(title)} }

// Input begins the next log, and shows its name. A page of one log needs no call of Input.
func (p *Page) Input(name string) {
	p.html.Input(name)
	p.Restart()
}

// SetPrefix sets a function that appends the text to show before a line, such as the line's time in
// a container's log. The function is for the current Filter only: filter.New removes it. prefix is
// called when the line is printed.
func (p *Page) SetPrefix(prefix func(dst []byte, line int64) []byte) { p.prefix = prefix }

// Begin sets the options that a Page needs. The page escapes all text itself. It shows the
// log's colours unless the options remove them.
func (p *Page) Begin(o *filter.Options) {
	o.Terminal, o.Display.Width, o.Display.Fold = false, 0, false
	if o.Color != filter.ColorNever {
		o.Color = filter.ColorForPrinter
	}
	p.prefix, p.same.own = nil, o.Display.Own
}

// AppendRest appends the rest of the page to dst. Call it once the page's Filters are closed.
// Nothing may be added to the page later.
func (p *Page) AppendRest(dst []byte) []byte {
	p.html.End()
	return p.html.Take(dst)
}

// AppendElement holds the element's resolved addresses until its line is printed, and appends a
// reference to them. It appends nothing for an element that a page shows only as text.
func (p *Page) AppendElement(dst []byte, e *filter.Element) []byte {
	h := backtrace.Held{Values: e.Values}
	switch {
	case e.Answer != nil && (e.Tag == markup.TagBT || e.Answer.Dialect != ""):
		h.Answer = *e.Answer
	case e.Tag != markup.TagHexDict:
		return dst
	}
	return p.Hold(dst, &h)
}

// AppendLine adds a line to the page, and appends the finished part of the page.
func (p *Page) AppendLine(dst []byte, l *filter.Line) []byte {
	if p.prefix != nil {
		l = p.before.add(l, p.prefix)
	}
	switch {
	case len(l.Frames) > 0 && !l.Continues && !isSummary(l.Text):
		p.AddFrames(l, p.endStack)
	case len(l.Elements) > 0:
		p.elements(l)
	default:
		p.line(l.Text, l.Process, len(l.EOL) > 0, l.Continues)
	}
	if len(l.Elements) > 0 {
		p.Release(l.Elements)
	}
	return p.html.Take(dst)
}

// line adds a line without elements, or a part of one, to the page.
func (p *Page) line(text []byte, process string, ended, continues bool) {
	switch {
	case continues:
		p.endStack()
		p.text(text, ended)
		p.Remember(text)
	case p.AddNamed(text, process, ended, p.endStack):
	case p.AddBetween(text, ended):
	default:
		p.endStack()
		p.foldDump(text)
		p.text(text, ended)
		p.Remember(text)
	}
}

// AppendLines adds whole lines without elements, and appends the finished part of the page. If
// a backtrace or a dump is open, or if lines have prefixes, it adds nothing and returns false.
func (p *Page) AppendLines(dst, whole []byte) (_ []byte, ok bool) {
	if !p.takesLines() {
		return dst, false
	}
	for len(whole) > 0 {
		n := backtrace.NextNamed(whole)
		if !p.html.Large() { // a large page has no folds
			n = min(n, nextDump(whole[:n]))
		}
		p.html.Lines(whole[:n])
		p.RememberAll(whole[:n])
		for whole = whole[n:]; len(whole) > 0; { // a backtrace or a dump, until it ends
			end := bytes.IndexByte(whole, '\n') + 1
			if end == 0 {
				end = len(whole)
			}
			text, eol := lines.CutEnd(whole[:end])
			p.line(text, "", len(eol) > 0, false)
			if whole = whole[end:]; p.takesLines() {
				break
			}
		}
	}
	return p.html.Take(dst), true
}

// text prints text, which may have line ends.
func (p *Page) text(text []byte, ended bool) {
	for {
		i := bytes.IndexByte(text, '\n')
		if i < 0 {
			break
		}
		p.html.Text(text[:i], true)
		text = text[i+1:]
	}
	p.html.Text(text, ended)
}

// elements prints a line with elements that is not part of a stack. Each value of a hexdict that is
// an address shows its details.
func (p *Page) elements(l *filter.Line) {
	p.endStack()
	p.values = p.values[:0]
	at := 0
	for i := range l.Elements {
		e := &l.Elements[i]
		h := p.Element(e.Appended)
		if h == nil {
			continue
		}
		at = max(at, e.Start)
		if e.End > e.Start {
			at = p.addValues(l.Text[:min(e.End, len(l.Text))], at, h.Values, false)
		} else { // values in earlier lines, and values in footnotes, which have a name
			at = p.addValues(l.Text, at, h.Values, true)
		}
	}
	p.Remember(l.Text)
	ended := len(l.EOL) > 0
	if len(p.values) == 0 {
		p.text(l.Text, ended)
		return
	}
	values := p.values
	for at, rest := 0, l.Text; ; {
		line, after, more := bytes.Cut(rest, newline)
		n := 0
		for n < len(values) && values[n].Start < at+len(line) {
			values[n].Start, values[n].End = values[n].Start-at, values[n].End-at
			n++
		}
		p.html.Values(line, more || ended, values[:n])
		if !more {
			break
		}
		values, rest = values[n:], after
		at += len(line) + 1
	}
	clear(p.values)
}

// addValues adds the values of a hexdict that are resolved. If named is set, it skips values
// without a name. It searches text[at:] for the values, in their order, and returns the offset
// after the last one that it added.
func (p *Page) addValues(text []byte, at int, values []filter.DictValue, named bool) int {
	for from := at; len(values) > 0 && from <= len(text); {
		v := &values[0]
		if r := v.Answer; r == nil || named && len(r.Frames) == 0 && r.Variable == nil {
			values = values[1:]
			continue
		}
		i := bytes.Index(text[from:], []byte("0x"))
		if i < 0 {
			break
		}
		start := from + i
		end := start + len("0x")
		for end < len(text) && isHex(text[end]) {
			end++
		}
		from = end
		if n, err := strconv.ParseUint(string(text[start+len("0x"):end]), 16, 64); err != nil || n != v.Value {
			continue
		}
		p.values = append(p.values, html.Value{Start: start, End: end, Detail: detailOf(v.Answer, 0)})
		values, at = values[1:], end
	}
	return at
}

func isHex(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f' }

func (p *Page) takesLines() bool { return !p.IsOpen() && !p.dump && p.prefix == nil }

// AppendEnd adds the held lines of the log to the page, and appends the finished part of the page.
func (p *Page) AppendEnd(dst []byte) []byte {
	p.endStack()
	return p.html.Take(dst)
}

// endStack prints the stack, if one is open, and the lines after it.
func (p *Page) endStack() {
	p.End(p.printStack, p.textRow)
}

func (p *Page) printStack(s *backtrace.Stack) {
	switch {
	case s.IsText():
		for i := range s.Rows {
			p.textRow(s.Text(i), s.Rows[i].Ended)
		}
	case s.IsSingle():
		p.html.Frames(p.htmlRows(s, p.same.of(s, ""), p.html.Large()))
		p.Remember(s.Text(0))
	default:
		p.backtrace(s)
	}
	clear(p.rows)
}

// textRow prints a row of a stack as text.
func (p *Page) textRow(text []byte, ended bool) {
	p.html.Text(text, ended)
	p.Remember(text)
}

// backtrace prints a stack as a backtrace.
func (p *Page) backtrace(s *backtrace.Stack) {
	role, continues := faults.Role(s.Message)
	same := p.same.of(s, role)
	b := html.Backtrace{Key: same.key, Message: s.Message, About: -1}
	if s.Cut {
		b.Key = ""
	}
	known := same.known || p.html.Known(b.Key)
	same.known = known && !s.Cut
	b.Rows = p.htmlRows(s, same, known)
	b.Beside = continues && faults.Within(p.Tail())
	if !known {
		about := aboutOf(s, same.kinds)
		b.About, b.Title, b.Role = about.row, about.title, role
		if b.Kind = faults.Kind(p.Tail()); b.Kind == "" && about.crash {
			b.Kind = "crash"
		}
	}
	p.DropTail()
	b.Time = timeOf(s.Message)
	if len(b.Time) == 0 {
		b.Time = timeOf(s.Text(0))
	}
	p.html.Backtrace(&b)
}

// htmlRows returns the rows of a stack, valid until the next call. If known is false, the rows have
// the names of their modules, and rows of other kinds than html.System have details.
func (p *Page) htmlRows(s *backtrace.Stack, same *verdict, known bool) []html.Row {
	all := p.rows[:0]
	for i := range s.Rows {
		r := &s.Rows[i]
		row := html.Row{Text: s.Text(i), Ended: r.Ended, Kind: same.kinds[i], More: r.More}
		if r.Answer >= 0 && !known {
			a := &s.Answers[r.Answer]
			row.Object = objectOf(a)
			if row.Kind != html.System && !r.More {
				d := detailOf(a, r.Frame)
				addSource(&d, a, r.Frame)
				row.Detail = &d
			}
		}
		all = append(all, row)
	}
	p.rows = all
	return all
}

// isSummary reports whether text is the last line of a sanitizer's report, which repeats a frame.
func isSummary(text []byte) bool {
	return bytes.HasPrefix(text, []byte("SUMMARY: "))
}
