package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/markup"
)

// A bare line is a backtrace element and a line end, as most lines of a markup log are. With a
// recent answer, bareLines takes a third of the time of the general code.

// bareDigits bounds the digits of a frame number in a bare line: layout.AppendHead has room for
// four.
const bareDigits = 4

// takesBare reports whether bareLines may filter the next lines: no earlier line is held back, and
// the output is plain text.
func takesBare(f *Filter) bool {
	return f.recent.slots != nil && f.printsBare() && isIdle(f.tracer)
}

// printsBare reports whether lines may be printed as plain text: the options allow it, and no
// hexdict, module line or partly printed line is open.
func (f *Filter) printsBare() bool {
	return f.bare && f.openDicts == 0 && f.open == nil && f.process.hex == nil && f.flushed.laid == 0 && len(f.layout.Buf) == 0
}

// bareLines filters bare lines at the start of b as lineOf would, and returns their length. It
// stops before a line that begins at limit or later, is not bare, or has no recent answer.
func bareLines(f *Filter, b []byte, limit int) (n int) {
	limit = min(limit, len(b))
	for n < limit {
		e, size := bareFrame(b[n:])
		if size == 0 {
			break
		}
		form := lookupOfFrame(&e)
		slot := f.recent.slot(e.addr, form)
		if slot.addr != e.addr || slot.form != form || slot.epoch != f.recent.epoch ||
			!f.stillBest(&slot.text) || len(slot.text.cuts) == 0 {
			break
		}
		f.answered++
		a := &slot.answer
		f.countAnswer(OriginBT, a)
		addr := e.shownAddr(a)
		last := len(a.text.cuts) - 1
		for i := range a.text.cuts {
			depth := 0
			if i < last {
				depth = i + 1
			}
			f.ready = layout.AppendHead(f.ready, e.number, depth, addr)
			f.ready = append(append(f.ready, a.text.tail(i)...), '\n')
		}
		f.line++
		f.elements++
		f.steps += int64(size - 1)
		n += size
		f.sendLarge()
	}
	if n > 0 {
		f.dictLookups = 0
		f.printOf(f.line)
		if f.tracer != nil {
			f.tracer.full = false
		}
	}
	return n
}

// bareFrame returns the frame of the line at the start of b, and the line's length. The length is 0
// if the line is not bare, or has a form that only the general code reads.
func bareFrame(b []byte) (e frameFields, size int) {
	const head, least, most = "{{{bt:", len("{{{bt:0:0x0}}}\n"), len("{{{bt:9999:0x0123456789abcdef:ra}}}\n")
	if len(b) < least || string(b[:len(head)]) != head {
		return e, 0
	}
	b = b[:min(len(b), most)]
	i := len(head)
	for ; b[i]-'0' <= 9; i++ { // in range: head and digits are shorter than the shortest line
		if i == len(head)+bareDigits {
			return e, 0
		}
		e.number = e.number*10 + uint64(b[i]-'0')
	}
	if i == len(head) || len(b) < i+len(":0x0}}}\n") || b[i] != ':' || b[i+1] != '0' || b[i+2] != 'x' {
		return e, 0
	}
	i += len(":0x")
	first := i
	for ; i < len(b); i++ {
		digit := hexDigit[b[i]]
		if digit > 15 {
			break
		}
		e.addr = e.addr<<4 | uint64(digit)
	}
	if i == first || i-first > 16 {
		return e, 0
	}
	switch rest := b[i:]; {
	case bytes.HasPrefix(rest, []byte("}}}\n")):
		return e, i + 4
	case bytes.HasPrefix(rest, []byte(":ra}}}\n")):
		e.kind = markup.ReturnAddress
		return e, i + 7
	case bytes.HasPrefix(rest, []byte(":pc}}}\n")):
		e.kind = markup.Precise
		return e, i + 7
	}
	return e, 0
}

// hexDigit maps hexadecimal digits to their values, and other bytes to 0xff.
var hexDigit = [256]uint8{
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 10, 11, 12, 13, 14, 15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 10, 11, 12, 13, 14, 15, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
	0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
}
