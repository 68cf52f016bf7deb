package dialect

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"
)

// A header is a text before or after the frames of a trace, usually on a line without a frame. It
// opens windows for the frames, or it introduces a fact about the process.
type header struct {
	text  string
	bytes []byte // text
	has   byteSet
	plain []byte // part of text that is the same in a JSON string
	opens window // windows of traces whose frames may follow
	lasts int64  // lines for which the windows stay open; 0: WindowLines
	holds bool   // maps or modules follow the frames, which must wait for them

	// fact, if not nil, reads facts about the process from the line b, which has the text at the
	// given offset.
	fact func(r *Reader, b []byte, at int)
}

const maxPast = 16 << 10 // bytes before the first frame of a trace that are searched for headers

// opened returns the windows that are open at the current line.
func (r *Reader) opened() (w window) {
	switch {
	case r.Firmware && r.OnX86:
		w = windowX86
	case r.Firmware:
		w = windowFirmware
	}
	return w | r.openAt(r.number)
}

// inTrace reports whether a frame or a map was found in the last lines. If so, even text that is
// common in logs may be a frame.
func (r *Reader) inTrace() bool { return r.opened()&windowTrace != 0 }

// Wants reports whether the line with this number must be read even without an anchor, because a
// window is open.
func (r *Reader) Wants(number int64) bool { return number <= r.latest }

// lookedBackFor are texts that the grammars of compute-sanitizer, ABRT and ThreadSanitizer search
// for in earlier lines.
var lookedBackFor = [][]byte{
	[]byte(hostFrame), []byte(`"address"`), []byte(`"build_id`), []byte(`"function_name"`), []byte("(BuildId: "),
}

// MayHaveHeader reports whether a line has the text of a header, or another text that a later line
// may need. Other lines without a frame or a map have no effect on later lines.
func (r *Reader) MayHaveHeader(line []byte) bool {
	r.load()
	return slices.ContainsFunc(r.headers, func(h header) bool { return bytes.Contains(line, h.bytes) }) ||
		slices.ContainsFunc(lookedBackFor, func(text []byte) bool { return bytes.Contains(line, text) })
}

// header applies the headers in l, and reports whether there are any.
func (r *Reader) header(l *Line) (found bool) {
	has := bytesOf(l.Text)
	for i := range r.headers {
		h := &r.headers[i]
		if !h.has.within(&has) {
			continue
		}
		if at := bytes.Index(l.Text, h.bytes); at >= 0 {
			r.apply(h, l.Text, at, r.number)
			found = true
		}
	}
	return found
}

func (r *Reader) apply(h *header, line []byte, at int, number int64) {
	lasts := h.lasts
	if lasts == 0 {
		lasts = WindowLines
	}
	if h.opens != 0 {
		r.openUntil(h.opens, number+lasts)
	}
	if h.holds { // a new report begins, perhaps by another process, and its maps follow
		r.facts.ForgetMaps()
		r.holdsUntil = max(r.holdsUntil, number+lasts)
	}
	if h.fact != nil {
		r.facts.touch(number)
		h.fact(r, line, at)
	}
}

// pastOpens reports whether unread earlier lines may have a header that opens the single window w.
// If not, a line that looks like a frame of a weak grammar is rejected without a search for all
// headers. Each byte is searched at most once for each window.
func (r *Reader) pastOpens(w window) bool {
	r.asked++
	sought := &r.sought[bits.TrailingZeros32(uint32(w))]
	past := r.RawPast
	if past == nil {
		past = r.Past
	}
	if past == nil || r.pastAt == r.number || *sought == r.number {
		return false
	}
	text := WithoutColors(past(r.unread(*sought - 1)))
	*sought = r.number
	for i := range r.headers {
		if h := &r.headers[i]; h.opens&w != 0 && bytes.Contains(text, h.plain) {
			return true
		}
	}
	return false
}

// plainPart returns the longest part of text without characters that may be escaped in a JSON
// string.
func plainPart(text string) (part string) {
	for _, s := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\"\\/<>&'\t", r) }) {
		if len(s) > len(part) {
			part = s
		}
	}
	return part
}

// readPast searches unread earlier lines for headers of the trace that begins here. It searches
// each byte of a log at most once.
func (r *Reader) readPast() {
	r.searched++
	if r.Past == nil || r.pastAt == r.number {
		return
	}
	lines := r.unread(-1) // includes the line pastAt, which was not read then
	if r.pastAt = r.number; lines > 0 {
		r.readLast(lines)
	}
}

func (r *Reader) readLast(lines int64) {
	past := WithoutColors(r.Past(lines))
	if len(past) > maxPast {
		past = past[len(past)-maxPast:]
		past = past[bytes.IndexByte(past, '\n')+1:]
	}
	r.inPast = true
	defer func() { r.inPast = false }()
	has := bytesOf(past)
	for i := range r.headers {
		h := &r.headers[i]
		for at := 0; h.has.within(&has); {
			n := bytes.Index(past[at:], h.bytes)
			if n < 0 {
				break
			}
			at += n
			start := bytes.LastIndexByte(past[:at], '\n') + 1
			end := len(past)
			if n := bytes.IndexByte(past[at:], '\n'); n >= 0 {
				end = at + n
			}
			line := past[start:end]
			if len(line) <= maxLine {
				r.apply(h, line, at-start, r.number-int64(bytes.Count(past[at:], []byte{'\n'})))
			}
			if at = end; at == len(past) {
				break
			}
		}
	}
}
