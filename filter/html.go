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

	values []html.Value // scratch
	rows   []html.Row   // scratch

	prefix func(dst []byte, line int64) []byte // see SetPrefix
	before prefixed
}

// NewPage returns a Page for the Filters that have it as their Printer and Output HTML. title is
// that of the page: the name of the log.
func NewPage(title string) *Page { return &Page{html: html.New(title)} }

// Input begins the next log, and shows its name: a page of one log needs none.
func (p *Page) Input(name string) { p.html.Input(name) }

// SetPrefix sets a function that appends the text to show before a line, such as the time of a line
// in a container's log. It is for the current Filter alone: New removes it. The function is
// called when the line is printed.
func (p *Page) SetPrefix(prefix func(dst []byte, line int64) []byte) { p.prefix = prefix }

// AppendEnd appends the rest of the page to dst and returns the extended slice. Nothing may be added
// to the page after it. It is called when the Filters of the page are closed.
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
	ended := len(l.EOL) > 0
	switch {
	case len(l.Frames) > 0 && !l.Continues && !isSummary(l.Text):
		p.addFrames(l, p.endStack)
	case len(l.Elements) > 0:
		p.elements(l)
	case p.stack.open() && !p.stack.waiting && !l.Continues && len(l.Text) <= maxBetween:
		p.stack.addBetween(l.Text, ended)
		p.remember(l.Text)
	default:
		p.endStack()
		p.text(l.Text, ended)
		p.remember(l.Text)
	}
	if len(l.Elements) > 0 {
		p.release(l.Elements)
	}
	return p.html.Take(dst)
}

// appendLines adds lines without elements to the page, which AppendLine would add one by one, and
// appends the part that is finished. No backtrace is open.
func (p *Page) appendLines(dst, lines []byte) []byte {
	p.html.Lines(lines)
	for rest := lines; len(rest) > 0; {
		at := bytes.LastIndexByte(rest[:len(rest)-1], '\n') + 1
		if text, _ := splitLine(rest[at:]); len(text) > 0 {
			p.remember(text)
			break
		}
		rest = rest[:at]
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
func (p *Page) takesLines() bool { return !p.stack.open() && p.prefix == nil }

// endLog prints the lines that are held, and ends the page if it is the Filter's own.
func (p *Page) endLog(dst []byte) []byte {
	p.endStack()
	if p.owned {
		return p.AppendEnd(dst)
	}
	return p.html.Take(dst)
}

// endStack prints the stack, if one is open.
func (p *Page) endStack() {
	s := &p.stack
	if !s.open() {
		return
	}
	rows := s.rows
	if s.waiting { // the line is after the stack
		rows = rows[:len(rows)-1]
	}
	after := rows[len(rows)-1].end
	s.rows = rows
	same := p.same.of(s)
	b := html.Backtrace{Key: same.key, Message: s.message, Rows: p.rows[:0]}
	if s.cut {
		b.Key = ""
	}
	single := s.single()
	known := same.known || p.html.Known(b.Key)
	if same.known = known && !s.cut; single {
		known = p.html.Large()
	}
	at := 0
	for i := range rows {
		r := &rows[i]
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
		b.Rows = append(b.Rows, row)
	}
	b.Time = timeOf(s.message)
	if len(b.Time) == 0 {
		b.Time = timeOf(s.text[:rows[0].end])
	}
	if single {
		p.html.Frames(b.Rows)
	} else {
		p.html.Backtrace(&b)
	}
	if s.waiting {
		r := s.rows[:len(rows)+1][len(rows)]
		p.html.Text(s.text[after:r.end], r.ended)
	}
	clear(b.Rows)
	p.rows = b.Rows
	clear(s.answers)
	*s = openStack{text: s.text[:0], rows: rows[:0], answers: s.answers[:0], message: s.message}
	if cap(s.text) > 2*maxStackText {
		s.text = nil
	}
}
