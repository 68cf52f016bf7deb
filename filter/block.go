package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/markup"
)

// block filters b, which ends with a line end. Lines without a mark ("{{{", or ESC if colours are
// followed) are not looked at one by one.
func (f *Filter) block(b []byte) {
	open, esc := -1, len(b)
	lines := 0    // line ends from at to open
	nextStep := 0 // from this offset on, the ahead gets the next one
	if f.o.Color != ColorKeep {
		esc = -1
	}
	for at := 0; at < len(b); {
		if f.ahead != nil && at >= nextStep {
			f.ahead.at.Store(int64(at))
			nextStep = at + aheadStep
		}
		if open < at {
			n, l := FindOpen(b[at:])
			open, lines = at+n, l
		}
		if esc < at {
			esc = nextEscape(b, at)
		}
		mark := min(open, esc)
		if f.openDicts > 0 {
			mark = at // each line may be part of the hexdict
		}
		if mark == len(b) {
			f.plain(b[at:], lines)
			return
		}
		start := at + bytes.LastIndexByte(b[at:mark], '\n') + 1
		end := mark + bytes.IndexByte(b[mark:], '\n') + 1
		if start > at {
			n := lines
			if mark != open {
				n = bytes.Count(b[at:start], newline)
			}
			f.plain(b[at:start], n)
			lines -= n
		}
		if end-start > maxLine+1 {
			f.longPart(b[start:end])
		} else {
			f.current.end = end
			f.lineOf(b[start:end])
		}
		lines--
		at = end
	}
}

// nextEscape returns the offset of the first ESC in b from at on, or len(b) if there is none.
func nextEscape(b []byte, at int) int {
	if i := bytes.IndexByte(b[at:], esc); i >= 0 {
		return at + i
	}
	return len(b)
}

// plain prints b as it is: whole lines, or a part of a line that is too long to be interpreted. The
// number of line ends in b is lines.
func (f *Filter) plain(b []byte, lines int) {
	f.closeModule()
	first := f.line + 1
	f.printOf(first)
	f.line += int64(lines)
	if f.records != nil || f.terminal {
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

// longPart prints a line that is too long to be interpreted, or a part of one: as it is, but without
// colours if they are removed.
func (f *Filter) longPart(b []byte) {
	ends := 0
	if bytes.HasSuffix(b, newline) {
		ends = 1
	}
	if f.o.Color != ColorNever {
		f.plain(b, ends)
		return
	}
	if len(f.longCut) > 0 {
		b = append(f.longCut, b...)
	}
	n := unfinishedSequences(b)
	f.longCut = append([]byte(nil), b[len(b)-n:]...)
	if b = withoutColor(b[:len(b)-n]); len(b) > 0 {
		f.plain(b, ends)
	}
}

// unfinishedSequences returns the length of the unfinished colour sequences at the end of b. There
// may be several, of which each but the last becomes whole if those after it are left out.
func unfinishedSequences(b []byte) (n int) {
	for n < maxLongCut {
		more := markup.UnfinishedSGR(b[:len(b)-n])
		if more == 0 {
			break
		}
		n += more
	}
	return n
}

// endLong prints the bytes that longPart has kept, when no more follow.
func (f *Filter) endLong() {
	if b := f.longCut; len(b) > 0 {
		f.longCut = nil
		f.plain(b, 0)
	}
}

// plainLines is plain for objects and for terminals, for which plain lines are changed. The first
// line of b has the number first.
func (f *Filter) plainLines(b []byte, first int64) {
	for line := range bytes.Lines(b) {
		f.printOf(first)
		first++
		text, eol := splitLine(line)
		if f.terminal {
			f.buf = f.visible.append(f.buf, text, len(eol) > 0)
			text = f.buf
		}
		l := &f.printed
		*l = Line{Number: f.of, Process: f.process.key, Continues: true}
		for len(text) > maxObject {
			n := maxObject - cutRune(text[:maxObject])
			l.Text, text = text[:n], text[n:]
			f.printLine(l)
		}
		l.Text, l.EOL, l.Continues = text, eol, len(eol) == 0
		f.printLine(l)
		f.buf = f.buf[:0]
		f.sendLarge()
	}
}
