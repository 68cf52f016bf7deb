package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/layout"
)

// A hot frame is a sanitizer's frame alone on its line, with a build ID and a recent answer. It is
// neither held back nor judged, and changes only counts, so the dialect reader need not read its
// line.

// quickLines filters lines at the start of b that are bare lines or hot frames, and returns their
// length. It stops before a line that begins at limit or later.
func (f *Filter) quickLines(b []byte, limit int) (n int) {
	if takesBare(f) {
		n = bareLines(f, b, limit)
	}
	if n == 0 && f.takesHot() {
		n = f.hotFrames(b, limit)
	}
	return n
}

// hotHead is the text before the number of a hot frame.
const hotHead = "    #"

// takesHot reports whether hotFrames may filter the next lines: no trace is open, and the output is
// plain text.
func (f *Filter) takesHot() bool {
	t := f.tracer
	return t != nil && t.repeats != nil && t.trace == nil && t.locator.recent.slots != nil && len(t.buffered) == 0 &&
		!t.maps.buffered && !t.maps.complete && f.printsBare()
}

// hotFrames filters hot frames at the start of b as takeLine would, and returns their length. It
// stops before a line that begins at limit or later, is not a hot frame, or must be kept for maps
// that may follow.
func (f *Filter) hotFrames(b []byte, limit int) (n int) {
	t := f.tracer
	c := &t.locator
	before := textBefore([]byte(hotHead[:len(hotHead)-1]))
	limit = min(limit, len(b))
	for n < limit {
		line, number, digits, end := hotLine(b[n:])
		if end == 0 {
			break
		}
		e, ok := t.reader.KnownEnd(line[end:])
		if !ok || !t.maps.isFull(lateSize(len(e.Module))) {
			break // the frame must be kept for maps that may follow
		}
		slot := c.recent.slot(e.Key, exactAddress)
		if slot.addr != e.Key || slot.epoch != c.recent.epoch || !f.stillBest(&slot.text) || !slot.text.isSimple() {
			break
		}
		f.elements++
		f.answered++
		f.proofs.count(judge.ByBuildID)
		a := &slot.answer
		f.countAnswer(OriginRaw, a)
		stack := c.stackAfter(before, number, false)
		number += stack.added
		for i := range a.text.cuts {
			f.ready = layout.AppendSmall(append(f.ready, hotHead...), uint64(number+i))
			f.ready = append(append(f.ready, line[digits:end+1]...), "in "...)
			f.ready = a.text.appendSimpleCall(f.ready, a.text.simpleCall(i), i)
			f.ready = append(append(f.ready, line[end+e.Size:]...), '\n')
		}
		stack.added += len(a.text.cuts) - 1
		f.line++
		n += len(line) + 1
		t.reader.Reread(len(line)+1, f.line, 0)
		f.sendLarge()
	}
	if n > 0 {
		f.dictLookups = 0
		f.printOf(f.line)
	}
	return n
}

// hotLine parses the line at the start of b. It returns the line without its end, the frame's
// number, the offset after the number (digits), and the offset after the address (end). The offset
// end is 0 if the line cannot be a hot frame.
func hotLine(b []byte) (line []byte, number, digits, end int) {
	if len(b) < len(hotHead) || string(b[:len(hotHead)]) != hotHead {
		return nil, 0, 0, 0
	}
	line = b[:bytes.IndexByte(b, '\n')]
	at := len(hotHead)
	for ; at < len(line) && line[at]-'0' <= 9; at++ {
		number = number*10 + int(line[at]-'0')
	}
	if digits = at; at == len(hotHead) || at > len(hotHead)+bareDigits || at > len(hotHead)+1 && line[len(hotHead)] == '0' {
		return nil, 0, 0, 0
	}
	const before = " 0x"
	if len(line) < at+len(before) || len(line) > maxLine || string(line[at:at+len(before)]) != before {
		return nil, 0, 0, 0
	}
	at += len(before)
	for end = at; end < len(line) && hexDigit[line[end]] <= 15; end++ {
	}
	if end == at || end > at+16 || end == len(line) {
		return nil, 0, 0, 0
	}
	return line, number, digits, end
}

// isSimple reports whether simpleCall returns a text for each call.
func (r *rendered) isSimple() bool {
	for i := range r.cuts {
		if r.simpleCall(i) == "" {
			return false
		}
	}
	return len(r.cuts) > 0
}
