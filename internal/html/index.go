package html

import (
	"bytes"
	"strconv"
)

// distinct are the backtraces of a page that differ.
type distinct struct {
	byKey    map[string]*entry
	entries  []*entry
	others   int64     // backtraces beyond maxDistinct
	sections []section // of a page that may become large
	size     int       // bytes of the backtraces of a large page
}

// A section is the HTML of a backtrace in a piece of a page.
type section struct{ piece, from, to int }

// An entry is a backtrace in the index.
type entry struct {
	number      int // from 1
	times       int64
	first, last occurrence
	label       []byte // HTML
	message     []byte // HTML
	absent      bool   // it is not on the page
}

type occurrence struct {
	line int64 // of the page
	time []byte
}

// The bounds of what an entry has of the log.
const (
	maxMessage = 200 // bytes
	maxTime    = 64  // bytes
)

// count counts b, whose first line is this line of the page. It returns no entry for a backtrace
// without a Key, or beyond maxDistinct.
func (d *distinct) count(b *Backtrace, line int64) (e *entry, isNew bool) {
	if b.Key == "" {
		return nil, false
	}
	time := b.Time[:min(len(b.Time), maxTime)]
	if e = d.byKey[b.Key]; e != nil {
		e.times++
		e.last = occurrence{line, append(e.last.time[:0], time...)}
		return e, false
	}
	if len(d.entries) >= maxDistinct {
		d.others++
		return nil, false
	}
	e = &entry{number: len(d.entries) + 1, times: 1, first: occurrence{line, bytes.Clone(time)}}
	if own := detailOf(b.own()); own.hasPlace() {
		e.label = appendPlace(nil, own)
	} else if len(b.Rows) > 0 {
		text := b.Rows[0].Text
		e.label = appendLine(nil, text[:min(len(text), maxMessage)], inElement)
	}
	e.message = appendLine(nil, b.Message[:min(len(b.Message), maxMessage)], inElement)
	if d.byKey == nil {
		d.byKey = make(map[string]*entry)
	}
	d.byKey[b.Key] = e
	d.entries = append(d.entries, e)
	return e, true
}

// index appends the index of the backtraces that differ.
func (p *Page) index() {
	b := append(p.out, "<nav id=\"index\" aria-labelledby=\"index-title\">\n<h2 id=\"index-title\">"+indexTitle+"</h2>\n"...)
	d := &p.distinct
	if len(d.entries) == 0 {
		p.out = append(b, "<p>There are none.</p>\n</nav>\n"...)
		return
	}
	b = append(b, "<table>\n<thead><tr><th scope=\"col\">Backtrace</th><th scope=\"col\">Times</th><th scope=\"col\">First</th><th scope=\"col\">Last</th><th scope=\"col\">After the line</th></tr></thead>\n<tbody>\n"...)
	for _, e := range d.entries {
		b = append(b, "<tr><td>"...)
		if !e.absent {
			b = append(strconv.AppendInt(append(b, `<a href="#c`...), int64(e.number), 10), `">`...)
		}
		b = strconv.AppendInt(b, int64(e.number), 10)
		if !e.absent {
			b = append(b, "</a>"...)
		}
		b = append(append(append(b, ' '), e.label...), "</td><td>"...)
		b = append(appendCount(b, e.times), "</td><td>"...)
		b = append(e.first.append(b), "</td><td>"...)
		if e.times > 1 {
			b = e.last.append(b)
		}
		b = append(b, "</td><td>"...)
		b = append(append(b, e.message...), "</td></tr>\n"...)
	}
	b = append(b, "</tbody>\n</table>\n"...)
	if d.others > 0 {
		b = append(appendCount(append(b, "<p>"...), d.others), " more backtraces are not listed: only the first "...)
		b = append(appendCount(b, maxDistinct), " that differ are told apart.</p>\n"...)
	}
	p.out = append(b, "</nav>\n"...)
}

// append appends the line, with a link for the script of the page, and the time.
func (o occurrence) append(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `<a href="#L`...), o.line, 10)
	dst = append(appendCount(append(dst, `">line `...), o.line), "</a>"...)
	if len(o.time) > 0 {
		dst = appendEscaped(append(dst, ", "...), o.time)
	}
	return dst
}

// appendCount appends a number with commas between thousands.
func appendCount(dst []byte, n int64) []byte {
	digits := strconv.FormatInt(n, 10)
	for i := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			dst = append(dst, ',')
		}
		dst = append(dst, digits[i])
	}
	return dst
}
