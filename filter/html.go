package filter

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/symfilter/symfilter/internal/html"
	"github.com/symfilter/symfilter/markup"
)

// maxHeldElements bounds the elements of a line that a page shows more of than their text. The
// others are text.
const maxHeldElements = 4096

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

	held  []heldElement // elements of lines that are not printed yet
	lines int           // number of held, whose lines are not printed yet
	round uint32        // number of times that held was emptied
	stack openStack
	same  verdicts
	last  []byte // the beginning of the last line that is not a frame

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
	p.held = append(p.held, h)
	p.lines++
	dst = binary.LittleEndian.AppendUint32(dst, p.round)
	return binary.LittleEndian.AppendUint32(dst, uint32(len(p.held)-1))
}

// AppendLine adds a line to the page, and appends the part that is finished.
func (p *Page) AppendLine(dst []byte, l *Line) []byte {
	if p.prefix != nil {
		l = p.before.add(l, p.prefix)
	}
	ended := len(l.EOL) > 0
	switch {
	case len(l.Frames) > 0 && !l.Continues && !isSummary(l.Text):
		p.frames(l)
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

// isSummary reports whether text is the last line of a sanitizer's report, which repeats a frame.
func isSummary(text []byte) bool {
	return bytes.HasPrefix(text, []byte("SUMMARY: "))
}

// release forgets the elements of a line that was printed.
func (p *Page) release(elements []LineElement) {
	for i := range elements {
		if len(elements[i].Made) > 0 {
			p.lines--
		}
	}
	if p.lines <= 0 || len(p.held) >= maxHeldElements {
		clear(p.held)
		p.held, p.lines = p.held[:0], 0
		p.round++
	}
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

// remember keeps the beginning of a line, which may be the message of a backtrace.
func (p *Page) remember(text []byte) {
	if len(text) > 0 {
		if len(text) > maxMessage {
			text = text[:maxMessage-unfinishedText(text[:maxMessage])]
		}
		p.last = append(p.last[:0], text...)
	}
}

// maxMessage bounds the message of a backtrace.
const maxMessage = 200 // bytes

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

// end prints the lines that are held, and ends the page if it is the Filter's own.
func (p *Page) end(dst []byte) []byte {
	p.endStack()
	if p.owned {
		return p.AppendEnd(dst)
	}
	return p.html.Take(dst)
}
