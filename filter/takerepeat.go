package filter

import (
	"bytes"
	"time"
)

// mayRepeat reports whether the options allow repeats: the output is plain text, and no option
// needs each frame.
func (f *Filter) mayRepeat() bool {
	o := &f.o.Dialects
	return f.bare && f.tracer != nil && f.o.Color == ColorKeep && !f.layout.Terminal &&
		!o.KeepRaw && !o.NoHold && !o.Code && o.Mapped == nil && o.Located == nil
}

// repeatAt returns the repeat that begins at b[at], or nil. Its lines need not be read: they may be
// held back at once. pending is the number of lines of b before this offset that are not printed
// yet.
func repeatAt(f *lineFilter, b []byte, at, pending int) *repeat {
	t := f.tracer
	if t == nil || t.repeats == nil || len(t.repeats.of) == 0 || f.openDicts > 0 {
		return nil
	}
	number := t.next() + int64(pending)
	decides, inTrace := t.reader.TextDecides(number, number)
	if !decides {
		return nil
	}
	r := t.repeats.find(b[at:], b[at:at+bytes.IndexByte(b[at:], '\n')+1], inTrace)
	if r == nil || !fitsAgain(t, r, number) {
		return nil
	}
	last := number + int64(len(r.ends)) - 1
	if r.searched {
		if decides, _ = t.reader.TextDecides(number, last); !decides {
			return nil
		}
		t.mark(number)
		t.marked = number
		t.past.block = b[:at]
		t.reader.SearchPast(number)
	}
	if decides, inTrace = t.reader.TextDecides(number, last); !decides || inTrace != r.inTrace {
		return nil
	}
	return r
}

// fitsAgain reports whether all lines of r may be held back now. number is the number of the first
// line.
func fitsAgain(t *tracer, r *repeat, number int64) bool {
	n, held := len(r.ends), len(t.buffered)
	if t.printed > 0 || t.listing || t.maps.buffered || t.maps.complete || t.full && held == 0 || t.late() {
		return false
	}
	lines, size := t.limits()
	frames := n
	if held > 0 {
		frames += t.buffered[held-1].upTo
	}
	if held+n >= lines || len(t.text)+len(r.text) >= size || frames >= maxBufferedFrames {
		return false
	}
	apart := number-t.last > 1 || held > 0 && t.buffered[held-1].lacksFrame()
	return r.read[0].Apart == apart && r.isCurrent(t.f)
}

func (t *tracer) bufferRepeat(r *repeat) {
	number, n := t.next(), len(r.ends)
	if t.mark(number); len(t.buffered) == 0 {
		t.since = time.Now()
	}
	t.endLast(r.text[:r.ends[0]])
	returns := bytes.Count(r.text, []byte("\r\n"))
	kept := int64(0)
	if r.kept > 0 {
		kept = number + int64(r.kept) - 1
	}
	t.reader.Reread(len(r.text)-returns, number+int64(n)-1, kept)
	t.endOld(number)
	t.begin()
	t.last = number + int64(n) - 1
	from, upTo := len(t.text), 0
	if held := len(t.buffered); held > 0 {
		upTo = t.buffered[held-1].upTo
	}
	t.text = append(t.text, r.text...)
	for i, end := range r.ends {
		l := bufferedLine{from: from, to: from, upTo: upTo + i + 1, repeated: true}
		if i == 0 {
			l.again = r
		} else {
			l.from = from + r.ends[i-1]
		}
		l.to += end
		t.buffered = append(t.buffered, l)
	}
	if t.late() {
		t.release()
	}
}
