package filter

import (
	"bytes"
	"strconv"

	"github.com/symfilter/symfilter/internal/html"
	"github.com/symfilter/symfilter/markup"
)

// A Page is a page of HTML with the logs of one Filter or of several, one after the other: the text
// of the logs, backtraces that fold, and an index of those that differ. The page needs no other
// file. What is on it is described in package internal/html.
//
// A Page is the Printer of its Filters, which print the part of the page that is finished: nothing,
// unless the page has more than 16 MiB. So Options.Emit may get the output for a line with that for
// a later one. Lines of a backtrace are held until it ends, because equal backtraces are folded.
// A Page takes at most about 64 MiB of memory. One Filter at a time may use it.
type Page struct {
	html  *html.Page
	owned bool // it is the page of one Filter, which ends it

	grouping
	same verdicts
	dump bool // the last line was one of a dump, which folds

	values []html.Value // scratch
	rows   []html.Row   // scratch

	prefix func(dst []byte, line int64) []byte // see SetPrefix
	before prefixed
}

// NewPage returns a Page for the Filters that have it as their Printer and Output HTML. title is
// that of the page: the name of the log.
func NewPage(title string) *Page { return &Page{html: html.New(title)} }

// Input begins the next log, and shows its name: a page of one log needs none.
func (p *Page) Input(name string) {
	p.html.Input(name)
	p.last, p.tail = p.last[:0], p.tail[:0]
}

// SetPrefix sets a function that appends the text to show before a line, such as the time of a line
// in a container's log. It is for the current Filter alone: New removes it. The function is
// called when the line is printed.
func (p *Page) SetPrefix(prefix func(dst []byte, line int64) []byte) { p.prefix = prefix }

// AppendEnd appends the rest of the page to dst and returns the extended slice. Nothing may be
// added to the page after it. It is called when the Filters of the page are closed.
func (p *Page) AppendEnd(dst []byte) []byte {
	p.html.End()
	return p.html.Take(dst)
}

// AppendElement appends the index of the element in held, and nothing for an element that a page
// shows as text only.
func (p *Page) AppendElement(dst []byte, e *Element) []byte {
	h := heldElement{values: e.Values}
	switch {
	case len(p.held) >= maxHeldElements:
		return dst
	case e.Answer != nil && (e.Tag == markup.TagBT || e.Answer.Dialect != ""):
		h.answer = *e.Answer
	case e.Tag != markup.TagHexDict:
		return dst
	}
	return p.hold(dst, h)
}

// AppendLine adds a line to the page, and appends the part that is finished.
func (p *Page) AppendLine(dst []byte, l *Line) []byte {
	if p.prefix != nil {
		l = p.before.add(l, p.prefix)
	}
	switch {
	case len(l.Frames) > 0 && !l.Continues && !isSummary(l.Text):
		p.addFrames(l, p.endStack)
	case len(l.Elements) > 0:
		p.elements(l)
	default:
		p.line(l.Text, l.Process, len(l.EOL) > 0, l.Continues)
	}
	if len(l.Elements) > 0 {
		p.release(l.Elements)
	}
	return p.html.Take(dst)
}

// line prints a line without elements, or a part of one.
func (p *Page) line(text []byte, process string, ended, continues bool) {
	switch {
	case continues:
		p.endStack()
		p.text(text, ended)
		p.remember(text)
	case p.addNamed(text, process, ended, p.endStack):
	case p.stack.mayAddBetween(text):
		p.stack.addBetween(text, ended)
	default:
		p.endStack()
		p.foldDump(text)
		p.text(text, ended)
		p.remember(text)
	}
}

// appendLines adds lines without elements to the page, which AppendLine would add one by one, and
// appends the part that is finished. No backtrace is open.
func (p *Page) appendLines(dst, lines []byte) []byte {
	for len(lines) > 0 {
		n := nextNamed(lines)
		if !p.html.Large() { // of which only the text is kept
			n = min(n, nextDump(lines[:n]))
		}
		p.html.Lines(lines[:n])
		p.rememberAll(lines[:n])
		for lines = lines[n:]; len(lines) > 0; { // a backtrace or a dump, up to where it may end
			end := bytes.IndexByte(lines, '\n') + 1
			if end == 0 {
				end = len(lines)
			}
			text, eol := splitLine(lines[:end])
			p.line(text, "", len(eol) > 0, false)
			if lines = lines[end:]; p.takesLines() {
				break
			}
		}
	}
	return p.html.Take(dst)
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

// elements prints a line with elements that is not a frame. Values of a hexdict show their answers.
func (p *Page) elements(l *Line) {
	p.endStack()
	p.values = p.values[:0]
	at := 0
	for i := range l.Elements {
		e := &l.Elements[i]
		h := p.element(e.Made)
		if h == nil {
			continue
		}
		at = max(at, e.Start)
		if e.End > e.Start {
			at = p.addValues(l.Text[:min(e.End, len(l.Text))], at, h.values, false)
		} else { // its values are in earlier lines, and those with a name in footnotes
			at = p.addValues(l.Text, at, h.values, true)
		}
	}
	p.remember(l.Text)
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

// addValues adds the values of a hexdict that have an answer, or a name if named is set, with their
// offsets in text[at:], which has the values in order. It returns the offset after the last one.
func (p *Page) addValues(text []byte, at int, values []DictValue, named bool) int {
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

// takesLines reports whether lines without elements may be given to appendLines.
func (p *Page) takesLines() bool { return !p.stack.open() && !p.dump && p.prefix == nil }

// endLog prints the lines that are held, and ends the page if it is the Filter's own.
func (p *Page) endLog(dst []byte) []byte {
	p.endStack()
	if p.owned {
		return p.AppendEnd(dst)
	}
	return p.html.Take(dst)
}

// endStack prints the stack, if one is open, and the lines after it.
func (p *Page) endStack() {
	s := &p.stack
	if !s.open() {
		return
	}
	rows := s.rows[:len(s.rows)-s.waiting]
	after := s.rows[len(rows):]
	s.rows = rows
	single := s.single()
	switch {
	case s.isText():
		p.textRows(0, rows)
	case single:
		p.html.Frames(p.htmlRows(p.same.of(s, ""), p.html.Large()))
		p.remember(s.text[:rows[0].end])
	default:
		p.backtrace()
	}
	p.textRows(rows[len(rows)-1].end, after)
	clear(p.rows)
	clear(s.answers)
	*s = openStack{text: s.text[:0], rows: rows[:0], answers: s.answers[:0], message: s.message}
	if cap(s.text) > 2*maxStackText {
		s.text = nil
	}
}

// textRows prints rows of the stack, whose text begins at an offset, as text.
func (p *Page) textRows(at int, rows []stackRow) {
	for i := range rows {
		text := p.stack.text[at:rows[i].end]
		p.html.Text(text, rows[i].ended)
		p.remember(text)
		at = rows[i].end
	}
}

// backtrace prints the stack as a backtrace.
func (p *Page) backtrace() {
	s := &p.stack
	role, continues := roleOnPage(s.message)
	same := p.same.of(s, role)
	b := html.Backtrace{Key: same.key, Message: s.message, About: -1}
	if s.cut {
		b.Key = ""
	}
	known := same.known || p.html.Known(b.Key)
	same.known = known && !s.cut
	b.Rows = p.htmlRows(same, known)
	b.Beside = continues && withinReport(p.tail)
	if !known {
		about := s.about(same.kinds)
		b.About, b.Title, b.Role = about.row, about.title, role
		if b.Kind = kindOnPage(p.tail); b.Kind == "" && about.crash {
			b.Kind = "crash"
		}
	}
	p.tail = p.tail[:0]
	b.Time = timeOf(s.message)
	if len(b.Time) == 0 {
		b.Time = timeOf(s.text[:s.rows[0].end])
	}
	p.html.Backtrace(&b)
}

// htmlRows returns the rows of the stack, with details unless they are known. They are valid until
// the next call.
func (p *Page) htmlRows(same *verdict, known bool) []html.Row {
	s := &p.stack
	all := p.rows[:0]
	at := 0
	for i := range s.rows {
		r := &s.rows[i]
		row := html.Row{Text: s.text[at:r.end], Ended: r.ended, Kind: same.kinds[i], More: r.more}
		at = r.end
		if r.answer >= 0 && !known {
			a := &s.answers[r.answer]
			row.Object = objectOf(a)
			if row.Kind != html.System && !r.more {
				d := detailOf(a, r.frame)
				addSource(&d, a, r.frame)
				row.Detail = &d
			}
		}
		all = append(all, row)
	}
	p.rows = all
	return all
}
