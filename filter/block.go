package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/internal/marks"
)

const esc = 0x1b

var (
	markupOpen = []byte("{{{")
	newline    = []byte{'\n'}
)

// block filters b, which ends with a line end. It prints lines without a mark in bulk. A mark is
// "{{{" or an anchor, a few bytes such as "0x" that occur in raw frames. In a firmware log, a
// number is a mark. If colours are followed or removed, ESC is a mark.
func (f *Filter) block(b []byte) {
	next := blockMarks{of: f, b: b, search: searchOf(f.tracer, b), open: -1, esc: len(b), number: len(b)}
	if firmware(f.tracer) {
		next.number = -1
	}
	if f.o.Color != ColorKeep && f.o.Color != ColorForPrinter {
		next.esc = -1
	}
	at, from := 0, 0 // b[:at] is filtered; b[at:from] is plain, and not printed yet
	lines := 0       // line ends in b[at:from]
	nextStep := 0    // offset from which the Filter next stores its position for the ahead
	for from < len(b) {
		if f.ahead != nil && from >= nextStep {
			f.ahead.at.Store(int64(from))
			nextStep = from + aheadStep
		}
		if at == from {
			limit := len(b)
			if f.ahead != nil {
				limit = nextStep
			}
			if n := f.quickLines(b[from:], limit-from); n > 0 {
				from += n
				at = from
				continue
			}
		}
		mark, before := next.after(from)
		lines += before
		if mark == len(b) {
			from = mark
			break
		}
		start := from
		if before > 0 {
			start += bytes.LastIndexByte(b[from:mark], '\n') + 1
		}
		if r := repeatAt(&f.lineFilter, b, start, lines); r != nil {
			if start > at {
				f.plain(b[at:start], lines)
			}
			from = start + len(r.text)
			at, lines = from, 0
			f.current.end = from
			f.tracer.bufferRepeat(r)
			continue
		}
		from = mark + bytes.IndexByte(b[mark:], '\n') + 1
		line := b[start:from]
		first := -1
		if mark == next.open {
			first = mark - start
		}
		means, plain := meaning(&f.lineFilter, b[:start], line, first, lines)
		if plain {
			lines++
			continue
		}
		if start > at {
			f.plain(b[at:start], lines)
		}
		at, lines = from, 0
		if len(line) > maxLine+1 {
			f.tracer.release()
			f.longPart(line)
			continue
		}
		f.current.end = from
		takeLine(&f.lineFilter, line, means)
	}
	if at < from {
		f.plain(b[at:from], lines)
	}
	f.tracer.keepPast(b)
}

// takeLine filters the line b. The dialect reader's result for the line is in means; nil if it
// found no frame and no map.
func takeLine(f *lineFilter, b []byte, means *dialect.Line) {
	if f.tracer != nil {
		f.tracer.take(b, means)
	} else {
		f.lineOf(b)
	}
}

type blockMarks struct {
	of     *Filter
	b      []byte
	search marks.Search
	open   int // offset of the next "{{{" or anchor; outdated once the search has passed it
	esc    int // offset of the next ESC; outdated once the search has passed it
	// offset of the next firmware number; outdated once the search has passed it
	number   int
	programs dialect.ProgramSearch
	counters marks.Search // finds names of registers if Reader.OnX86 is set: see nextNumber
	base     int          // offset at which the counting of lines starts
	lines    int          // line ends from base to open
}

// after returns the offset of the first mark in m.b[from:], and the number of line ends between
// from and the mark.
func (m *blockMarks) after(from int) (mark, lines int) {
	f := m.of
	if f.openDicts > 0 || f.tracer.wants() {
		return from, 0 // each line may be part of an open hexdict or trace
	}
	if m.open < from {
		m.open, m.lines = m.nextOpen(from)
		m.base = from
	}
	if m.base < from {
		m.lines -= bytes.Count(m.b[m.base:from], newline)
		m.base = from
	}
	if m.esc < from {
		m.esc = nextEscape(m.b, from)
	}
	if m.number < from {
		m.number = m.nextNumber(from)
	}
	first := min(m.esc, m.number)
	if f.tracer != nil && f.tracer.reader.Firmware && !f.tracer.reader.OnX86 {
		first = min(first, m.programs.Next(m.b, from))
	}
	if first < m.open {
		return first, bytes.Count(m.b[from:first], newline)
	}
	return m.open, m.lines
}

// nextOpen returns the offset of the first "{{{" or anchor in m.b[from:], and the number of line
// ends between from and this offset. A line starts at the offset from.
func (m *blockMarks) nextOpen(from int) (at, lines int) {
	if m.of.tracer == nil {
		at, lines = marks.FindOpen(m.b[from:])
		return from + at, lines
	}
	return m.search.NextOf(from)
}

// nextNumber returns the offset of the next firmware number in m.b[from:], or len(m.b). For x86
// kernels it is the offset of a register's name, which is found ten times as fast.
func (m *blockMarks) nextNumber(from int) int {
	if !m.of.tracer.reader.OnX86 {
		return dialect.NextFirmware(m.b, from)
	}
	if m.counters.IsZero() {
		m.counters = marks.SearchCounters(m.b)
	}
	for {
		at, _ := m.counters.Next(from)
		if at == len(m.b) || dialect.IsCounter(m.b, at) {
			return at
		}
		from = at + 1
	}
}

func nextEscape(b []byte, at int) int {
	if i := bytes.IndexByte(b[at:], esc); i >= 0 {
		return at + i
	}
	return len(b)
}

// plain prints b without resolving anything. b has whole lines, or a part of a line that is too
// long to interpret. lines is the number of line ends in b.
func (f *Filter) plain(b []byte, lines int) {
	f.closeModule()
	f.ready = f.layout.Display.EndTrace(f.ready)
	first := f.line + 1
	f.printOf(first)
	f.line += int64(lines)
	if f.records != nil || f.layout.Terminal {
		f.plainLines(b, first)
		return
	}
	if len(b) < directWrite {
		f.ready = append(f.ready, b...)
		f.sendLarge()
		return
	}
	f.send()
	f.write(b)
}

// longPart prints b, a line that is too long to interpret, or a part of such a line. With
// ColorNever it removes colours. With ColorNever or ColorForPrinter it holds back an unfinished
// colour sequence at the end of b, with ColorForPrinter also an unfinished character.
func (f *Filter) longPart(b []byte) {
	ends := 0
	if bytes.HasSuffix(b, newline) {
		ends = 1
	}
	if f.o.Color != ColorNever && f.o.Color != ColorForPrinter {
		f.plain(b, ends)
		return
	}
	if len(f.longCut) > 0 {
		b = append(f.longCut, b...)
	}
	n := unfinishedSequences(b)
	if f.o.Color == ColorForPrinter {
		n = unfinishedText(b)
	}
	f.longCut = append([]byte(nil), b[len(b)-n:]...)
	if b = b[:len(b)-n]; f.o.Color == ColorNever {
		b = layout.WithoutColor(b)
	}
	if len(b) > 0 {
		f.plain(b, ends)
	}
}

// unfinishedSequences returns the length of the unfinished colour sequences at the end of b:
// removing a sequence may complete the sequence before it.
func unfinishedSequences(b []byte) (n int) {
	for n < maxLongCut {
		more := access.UnfinishedSGR(b[:len(b)-n])
		if more == 0 {
			break
		}
		n += more
	}
	return n
}

// endLong prints the bytes that longPart holds back, at the end of the line.
func (f *Filter) endLong() {
	if b := f.longCut; len(b) > 0 {
		f.longCut = nil
		f.plain(b, 0)
	}
}

// plainLines prints b like plain, but line by line, for printers and terminals. first is the number
// of the first line of b. A LogPrinter may take all lines at once.
func (f *Filter) plainLines(b []byte, first int64) {
	for len(b) > 0 {
		f.printOf(first)
		if f.whole != nil && b[len(b)-1] == '\n' {
			if out, ok := f.whole.AppendLines(f.ready, b); ok {
				f.ready = out
				f.sendLarge()
				return
			}
		}
		n := bytes.IndexByte(b, '\n') + 1
		if n == 0 {
			n = len(b)
		}
		line := b[:n]
		b = b[n:]
		first++
		text, eol := lines.CutEnd(line)
		if f.layout.Terminal {
			f.layout.Buf = f.layout.Visible.Append(f.layout.Buf, text, len(eol) > 0)
			text = f.layout.Buf
		}
		l := &f.printed
		*l = Line{Number: f.of, Process: f.process.key, Continues: true}
		for len(text) > maxObject {
			n := maxObject - unfinishedText(text[:maxObject])
			l.Text, text = text[:n], text[n:]
			f.printLine(l)
		}
		l.Text, l.EOL, l.Continues = text, eol, len(eol) == 0
		f.printLine(l)
		f.layout.Buf = f.layout.Buf[:0]
		f.sendLarge()
	}
}

// unfinishedText returns the length of an unfinished colour sequence or character at the end of b.
func unfinishedText(b []byte) int {
	if n := access.UnfinishedSGR(b); 0 < n && n < maxLongCut {
		return n
	}
	return escape.CutRune(b)
}
