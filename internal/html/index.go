package html

import (
	"bytes"
	"strconv"
)

// distinct counts the distinct backtraces of a page.
type distinct struct {
	byKey    map[string]*entry
	entries  []*entry
	others   int64     // occurrences of backtraces not in entries, after maxDistinct others
	sections []section // HTML of backtraces, to copy if the page becomes large
	size     int       // bytes of the backtraces of a large page
}

// A section locates the HTML of a backtrace: a range of bytes in a piece of the page.
type section struct {
	piece, from, to int
	beside          bool // see Backtrace
}

// An entry is a backtrace in the index.
type entry struct {
	number      int // from 1, in the order of the page
	times       int64
	first, last occurrence
	kind        string // Backtrace.Kind, at most maxName bytes
	label       []byte // HTML after the number
	message     []byte // HTML
	absent      bool   // the backtrace is not on the page
}

type occurrence struct {
	line int64 // line on the page
	time []byte
}

// Bounds of an entry's texts from the log.
const (
	maxMessage = 200 // bytes
	maxTime    = 64  // bytes
)

// count counts an occurrence of b that begins at the given line of the page. The entry is nil if b
// has no Key, or if b is new and the page already has maxDistinct backtraces.
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
	e.kind = shorten(b.Kind)
	if b.Role != "" {
		e.label = appendEscaped(append(e.label, ", "...), []byte(shorten(b.Role)))
	}
	e.label = append(e.label, ": "...)
	if b.Title.hasPlace() {
		e.label = appendPlace(e.label, &b.Title)
	} else if len(b.Rows) > 0 {
		text := bytes.TrimSpace(b.Rows[0].Text)
		e.label = appendLine(e.label, text[:min(len(text), maxMessage)], inElement)
	}
	e.message = appendLine(nil, b.Message[:min(len(b.Message), maxMessage)], inElement)
	if d.byKey == nil {
		d.byKey = make(map[string]*entry)
	}
	d.byKey[b.Key] = e
	d.entries = append(d.entries, e)
	return e, true
}

// append appends the line number, as a link for the page's script, and the time if there is
// one.
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
