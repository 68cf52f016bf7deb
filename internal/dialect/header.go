package dialect

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"
)

// A header is a text that opens windows, or names a module. It comes before or after the frames of
// a trace, usually on a line without a frame.
type header struct {
	text  string
	bytes []byte // text
	has   byteSet
	plain []byte // the part of it that is the same in a string of JSON
	opens window // the traces whose frames may follow
	lasts int64  // lines for which the windows stay open; 0: windowLines
	holds bool   // maps or modules follow the frames, so that the frames are held until then

	// fact, if not nil, reads facts about the process from the line b, which has the text at at.
	fact func(r *Reader, b []byte, at int)
}

// A window is a set of kinds of traces, each of which had a header or a frame within the last
// WindowLines lines.
type window uint32

// windowTrace is open after each frame whose build ID is not known. While it is open every line is
// read, because it may have maps or modules.
const windowTrace window = 1

// The windows of single dialects.
const (
	windowJVM window = windowTrace << (iota + 1)
	windowEnvoy
	windowSeastar
	windowCpptrace
	windowLLVM
	windowGo
	windowHeap
	windowFortran
	windowBreakpad
	windowCuda
	windowCoredump
	windowABRT
	windowEuStack
	windowGDB // at the next line alone
	windowESPRust
	windowFirmware // always open if [Reader.Firmware] is set, and OnX86 is not
	windowX86      // always open if both are set
)

const (
	WindowLines = 256      // lines for which a window stays open
	maxWindow   = 16384    // most lines for which a header may keep a window open
	maxPast     = 16 << 10 // bytes before the first frame of a trace that are searched for headers
	maxWindows  = 32
)

// open opens the windows w at the line with this number.
func (r *Reader) open(w window, number int64) { r.openUntil(w, number+WindowLines) }

// openUntil opens the windows w up to the line with the number last.
func (r *Reader) openUntil(w window, last int64) {
	for i := range r.until {
		if w&(1<<i) != 0 {
			r.until[i] = max(r.until[i], last)
			r.latest = max(r.latest, r.until[i])
		}
	}
}

// opened returns the windows that are open at the current line.
func (r *Reader) opened() (w window) {
	switch {
	case r.Firmware && r.OnX86:
		w = windowX86
	case r.Firmware:
		w = windowFirmware
	}
	if r.number > r.latest {
		return w
	}
	for i, until := range r.until {
		if r.number <= until {
			w |= 1 << i
		}
	}
	return w
}

// Wants reports whether every line has to be read up to the line with this number, since windows
// are open.
func (r *Reader) Wants(number int64) bool { return number <= r.latest }

// lookedBackFor are texts of lines that grammars for a later line look for: of compute-sanitizer, of
// ABRT, and of ThreadSanitizer's frames with a build ID.
var lookedBackFor = [][]byte{
	[]byte(hostFrame), []byte(`"address"`), []byte(`"build_id`), []byte(`"function_name"`), []byte("(BuildId: "),
}

// MayHaveHeader reports whether a line has the text of a header, or one that a later line may need. A
// line without one has no effect on later lines.
func (r *Reader) MayHaveHeader(line []byte) bool {
	r.load()
	return slices.ContainsFunc(r.headers, func(h header) bool { return bytes.Contains(line, h.bytes) }) ||
		slices.ContainsFunc(lookedBackFor, func(text []byte) bool { return bytes.Contains(line, text) })
}

// header reads the headers of l's line, and reports whether there is one.
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
	if h.holds { // the report of another process begins, whose maps follow
		r.facts.ForgetMaps()
		r.holdsUntil = max(r.holdsUntil, number+lasts)
	}
	if h.fact != nil {
		r.touchFacts(number)
		r.headerAt = number
		h.fact(r, line, at)
	}
}

// touchFacts forgets the facts about processes if they are older than FactLines, and restarts that
// count.
func (r *Reader) touchFacts(number int64) {
	if number-r.factsAt > FactLines {
		program := r.facts.program // a device prints it only when it starts
		r.facts.Reset()
		r.facts.SetProgram(program)
	}
	r.factsAt = number
}

// pastOpens reports whether the lines before the current one may have a header that opens w, a single
// window. Ordinary lines that look like a frame of a weak grammar are so rejected without a search
// for all headers. Each byte is searched at most once for each window.
func (r *Reader) pastOpens(w window) bool {
	sought := &r.sought[bits.TrailingZeros32(uint32(w))]
	past := r.RawPast
	if past == nil {
		past = r.Past
	}
	if past == nil || r.pastAt == r.number || *sought == r.number {
		return false
	}
	text := WithoutColors(past(r.number - max(r.pastAt-1, r.readTo, *sought-1) - 1))
	*sought = r.number
	for i := range r.headers {
		if h := &r.headers[i]; h.opens&w != 0 && bytes.Contains(text, h.plain) {
			return true
		}
	}
	return false
}

// plainPart returns the longest part of text that is the same in all strings of JSON.
func plainPart(text string) (part string) {
	for _, s := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("\"\\/<>&'\t", r) }) {
		if len(s) > len(part) {
			part = s
		}
	}
	return part
}

// readPast searches the unread lines before the current one for headers of the trace that begins
// here. It searches each byte of a log at most once.
func (r *Reader) readPast() {
	if r.Past == nil || r.pastAt == r.number {
		return
	}
	lines := r.number - max(r.pastAt-1, r.readTo) - 1 // the line pastAt itself was not read at that time
	if r.pastAt = r.number; lines > 0 {
		r.readLast(lines)
	}
}

// readLast searches the last lines before the current one for headers.
func (r *Reader) readLast(lines int64) {
	past := r.lastLines(lines)
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
