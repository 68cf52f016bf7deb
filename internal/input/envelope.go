package input

import (
	"bytes"
	"cmp"
	"io"
	"math"
	"time"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/internal/marks"
)

// An Envelope filters a log whose texts have envelopes: the log of a container (Container Runtime
// Interface, or Docker's driver json-file), lines of JSON, or a journal. The filter gets the texts
// without envelopes. Each output line gets the envelope of its input line. Unchanged lines, and
// lines without an envelope, are printed byte for byte.
//
// Both formats of containers cut long lines, and CRI also cuts unfinished ones. Parts that may
// contain an element are joined, separately for the container's two streams, and printed once the
// line is whole. Other parts are printed at once.
type Envelope struct {
	format Format
	docker bool // the format is Docker's
	c      container
	names  []string  // filtered members of JSON
	keys   keyReader // finds the process of a record; without names, there is one process
	f      filtering
	out    sealer

	search   bool // lines without marks go to the filter's Text, uninterpreted
	every    bool // every line is opened, even without markup
	pass     bool // parts without markup are printed at once
	ascii    bool // envelopes must be ASCII: a terminal would obey control characters
	each     bool // any line may be part of a hexdict or of a backtrace
	dict     bool // a hexdict is open
	traces   bool // raw backtraces are resolved
	elements bool // raw backtraces become elements
	lines    bool // messages of a journal are printed as lines
	hint     int
	// the format was decided by only a part of the first entry, so another program may have written
	// the log
	doubt bool

	cut     lines.Cutter
	entries entryCutter // for a journal

	streams [2]stream
	text    []byte  // scratch: unquoted text of a line
	found   []field // scratch: fields of a record
	inner   []byte  // scratch: texts of the fields, in a line of a container
	given   []byte  // scratch: a line for the filter
	key     []byte  // scratch: key of a record
}

// A prefixer is a Printer that shows a text, such as the time, before each line.
type prefixer interface {
	SetPrefix(prefix func(dst []byte, line int64) []byte)
}

// A stream is one of the container's two output streams.
type stream struct {
	begun   bool   // an unfinished line has begun
	long    bool   // the line is longer than maxLine: each part is filtered as a line
	out     []byte // text of printed parts
	parts   []part // the held parts
	text    []byte // text of the held parts
	marked  bool   // text contains a mark
	ends    []int  // end of each part in text
	raw     []byte // input lines of the held parts
	rawEnds []int  // end of each line in raw

	searched int // bytes of text searched for a mark so far; tests check its bound
}

const (
	// bytes of an opened line, and of the text of a joined line
	maxLine = 1 << 20
	maxHeld = 2 << 20 // bytes of the input lines of held parts
	// bytes of queued backtrace lines; the filter usually holds at most 64 KiB of text
	maxQueued  = 8 << 20
	maxScratch = 128 << 10 // bytes of a buffer that is reused
)

var (
	markupOpen = []byte("{{{")
	newline    = []byte{'\n'}
)

// NewEnvelope returns an Envelope for logs of the format CRI, Docker, JSON or Journal. It filters
// them with the options o, and writes to w. JSON output has the envelopes as members. A Printer in
// o gets the texts, and its output has no envelopes. An Envelope is not safe for concurrent use.
//
// fields are the filtered members of JSON lines, in the form of [DefaultFields]. If fields is
// empty, DefaultFields are used.
func NewEnvelope(format Format, o filter.Options, w io.Writer, fields ...string) *Envelope {
	e := &Envelope{format: format, cut: lines.Cutter{Max: maxLine}, docker: format == Docker, names: fields}
	if len(fields) == 0 {
		e.names = DefaultFields()
	}
	switch format {
	case CRI:
		e.c = cri
	case Docker:
		e.c = docker
	default:
		e.c = container{unfinished: func(b []byte, _ *int) int { return len(b) }}
	}
	records := o.Output != filter.Text || o.Printer != nil
	e.every = records || format != CRI && o.Color != filter.ColorKeep
	e.pass = !records && o.Color == filter.ColorKeep && !o.Terminal
	e.ascii = o.Terminal
	e.search = o.Color == filter.ColorKeep
	e.elements = o.Dialects.Elements
	e.out = sealer{w: w, c: e.c, records: records, term: o.Terminal}
	o.Emit = e.out.emit
	if e.traces = o.Symbolizer != nil && !o.Dialects.None; e.traces {
		var buf []byte
		o.Dialects.Unwrap = func(dst, lines []byte) []byte {
			if format == Journal {
				return appendMessages(dst, lines)
			}
			for line := range bytes.Lines(lines) {
				dst = append(append(dst, e.textOf(bytes.TrimSuffix(line, newline), &buf)...), '\n')
			}
			return dst
		}
		logged := o.Dialects.Logged
		o.Dialects.Logged = func() time.Time {
			if e.out.cur != nil {
				if at := loggedAt(format, e.out.cur.raw); !at.IsZero() {
					return at
				}
			}
			if logged == nil {
				return time.Time{}
			}
			return logged()
		}
	}
	if members := o.Members; members != nil {
		o.Members = func(dst []byte, line int64) []byte { return e.out.members(members(dst, line), line) }
	} else {
		o.Members = e.out.members
	}
	e.f = filteringWith(o)
	if p, ok := o.Printer.(prefixer); ok {
		p.SetPrefix(e.out.prefix)
	}
	e.look()
	return e
}

// Filter returns the Filter of the Envelope, for its unresolved frames. Callers must not write to
// the Filter.
func (e *Envelope) Filter() *filter.Filter { return e.f.Filter }

// Write filters p. On return, every complete line in p is written, except lines that the filter
// holds: a module line, or a raw backtrace. Parts of an unfinished line that may contain an element
// are held, too.
func (e *Envelope) Write(p []byte) (int, error) {
	if e.format == Journal {
		e.writeEntries(p)
		p = nil
	}
	for rest := p; len(rest) > 0; {
		var b []byte
		var kind lines.Kind
		switch b, kind, rest = e.cut.Block(rest); kind {
		case lines.Whole:
			e.block(b)
		case lines.Head:
			e.passOn(nil, func() {})
			e.filterBare(b)
		case lines.Rest:
			e.filterBare(b)
		}
	}
	e.out.flush()
	if e.out.err != nil {
		return 0, e.out.err
	}
	return len(p), nil
}

// Close ends the log, and closes the filter.
func (e *Envelope) Close() error {
	e.entry(e.entries.finish())
	tail, _ := e.cut.Finish()
	if len(tail) > 0 && e.line(tail, func() {}) {
		tail = nil
	}
	for i := range e.streams {
		e.join(&e.streams[i])
	}
	e.filterBare(tail) // last bytes of the log, without a line end
	err := e.f.Close()
	e.out.settle(math.MaxInt64)
	e.out.flush()
	return cmp.Or(e.out.err, err)
}

// passUnfinished prints an unfinished last line or entry unchanged. It is called if a log pauses
// within its first entry. The rest of that entry is printed unchanged, too.
func (e *Envelope) passUnfinished() error {
	if b := e.entries.giveUp(); len(b) > 0 {
		e.passEntry(b)
		e.out.flush()
	}
	if tail, _ := e.cut.Unfinished(); len(tail) > 0 {
		e.passOn(nil, func() {})
		e.filterBare(e.cut.GiveUp())
		e.f.Flush() // e.out keeps the writer's error
		e.out.flush()
	}
	return e.out.err
}

// filterBare filters b, which has no envelopes: whole lines, or parts of a very long line.
func (e *Envelope) filterBare(b []byte) {
	if len(b) == 0 {
		return
	}
	e.out.cur = nil
	e.f.Write(b) // e.out keeps the writer's error
	e.catchUp()
}

// catchUp prints the lines that the filter no longer holds.
func (e *Envelope) catchUp() {
	e.out.settled(e.done())
	e.look()
}

// done returns the number of lines before the backtrace that the filter holds, or of all lines if
// it holds none. module is the number of the module line that the filter holds, or 0.
func (e *Envelope) done() (done, module int64) {
	done = e.f.Line() - int64(e.f.HeldTrace())
	if module = e.f.HeldModule(); module > done {
		module = 0
	}
	return done, module
}

// look updates e.dict and e.each, which decide which lines are given to the filter.
func (e *Envelope) look() { e.dict, e.each = e.f.InDict(), e.f.Wants() }

// Unfinished reports whether Flush may have an effect.
func (e *Envelope) Unfinished() bool { return e.f.HeldTrace() > 0 }

// Flush prints the held lines of a raw backtrace. Callers use it if the log pauses.
func (e *Envelope) Flush() error {
	if e.Unfinished() {
		e.f.Flush() // e.out keeps the writer's error
		e.catchUp()
		e.out.flush()
	}
	return e.out.err
}

// Release prints all lines that the filter holds, even the module line that is collecting its maps.
// Parts of an unfinished line stay held.
func (e *Envelope) Release() error {
	e.f.Release() // e.out keeps the writer's error
	e.catchUp()
	e.out.flush()
	return e.out.err
}

// quick reports whether lines without markup may be printed unopened.
func (e *Envelope) quick() bool {
	return !e.every && !e.each && !e.doubt && !e.streams[0].begun && !e.streams[1].begun
}

// settle examines the first entry of a log if only a part of that entry has decided the format.
// Another program has written the log if the entry's text has no line end, but is shorter than the
// lines that Docker cuts. Each entry is then a whole line.
func (e *Envelope) settle(p part, text []byte) {
	e.doubt = false
	if !p.whole && len(text) < chunkSize {
		for i := range e.streams {
			e.streams[i] = stream{begun: true, long: true}
		}
	}
}

// block filters b, which ends with a line end.
func (e *Envelope) block(b []byte) {
	unfinished := -1
	raw, at := 0, 0 // b[raw:at] is printed unchanged
	flush := func() {
		e.filterBare(b[raw:at])
		raw = at
	}
	for at < len(b) {
		if e.quick() {
			flush()
			if unfinished < at {
				unfinished = at + e.c.unfinished(b[at:], &e.hint)
			}
			at += e.plain(b[at:unfinished])
			if raw = at; at == len(b) {
				return
			}
		}
		end := at + bytes.IndexByte(b[at:], '\n') + 1
		if e.line(b[at:end], flush) {
			raw = end
		}
		at = end
	}
	flush()
}

// plain gives the filter the whole lines of b before the first line that may have a mark. It
// returns the length of these lines in bytes.
func (e *Envelope) plain(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	n := 0
	switch {
	case !e.traces:
		n, _ = marks.FindOpen(b)
	case e.docker, e.format == JSON:
		n, _ = marks.FindEscaped(b)
	default:
		n, _ = marks.Find(b)
	}
	if e.format == JSON {
		n = min(n, beforeArrays(b[:n]))
	}
	if n < len(b) {
		n = bytes.LastIndexByte(b[:n], '\n') + 1
	}
	if !e.search {
		e.filterBare(b[:n])
	} else if n > 0 {
		e.f.Text(b[:n]) // e.out keeps the writer's error
	}
	return n
}

// line processes a line, or an entry of the journal. It returns false if the caller must print the
// line unchanged. Before it prints or keeps anything itself, it calls flush.
func (e *Envelope) line(line []byte, flush func()) bool {
	if e.format == JSON || e.format == Journal {
		return e.recordLine(line, flush)
	}
	var p part
	var text []byte
	ok := len(line) <= maxLine+1
	if ok {
		p, text, ok = e.c.open(bytes.TrimSuffix(line, newline), &e.text)
	}
	if ok && e.doubt {
		e.settle(p, text)
	}
	if !ok || e.ascii && !ascii(p.tail) {
		if !ok && e.docker { // members in another order, or with blanks
			return e.recordLine(line, flush)
		}
		return e.bareLine(line, flush)
	}
	s := &e.streams[0]
	if p.stderr {
		s = &e.streams[1]
	}
	e.passOn(s, flush)
	marked := e.every || e.dict || e.marked(text)
	if p.whole && !s.begun && !(len(text) > 0 && text[0] == '{') { // not JSON: no escapes
		marked = e.every || e.dict || e.f.HasMark(text)
	}
	switch {
	case !s.begun && p.whole, s.long:
		s.begun = !p.whole
		s.long = s.long && s.begun
		if !marked && !e.each {
			return false
		}
		flush()
		e.filterLine(&seal{parts: []part{p}, text: text, raw: line, open: !p.whole, noEnd: line[len(line)-1] != '\n'})
	case !p.whole && !marked && e.pass && len(s.parts) == 0 && !access.MayBecomeElement(text):
		s.begun = true
		if s.out = append(s.out, text...); len(s.out) > maxLine {
			*s = stream{begun: true, long: true}
		}
		return false
	case !p.whole:
		flush()
		e.hold(s, p, text, line)
		if len(s.out)+len(s.text) > maxLine || len(s.raw) > maxHeld {
			e.release(s)
		}
	case len(s.parts) == 0 && !marked && (!e.each || len(s.out) > 0):
		*s = stream{}
		return false
	default:
		flush()
		e.hold(s, p, text, line)
		e.join(s)
	}
	return true
}

// bareLine processes a line without an envelope. Its result and flush are the same as in line.
func (e *Envelope) bareLine(line []byte, flush func()) bool {
	e.passOn(nil, flush)
	if !e.each && !e.f.HasMark(line) {
		return false
	}
	flush() // the line may open or close a hexdict
	e.enter(nil)
	e.filterBare(line)
	return true
}

func (e *Envelope) filterLine(l *seal) {
	if len(l.text) > 0 && l.text[0] == '{' && len(l.parts) == 1 && len(l.out) == 0 && !l.open {
		if fields, ok := e.jsonFields(e.found[:0], l.text, &e.inner); ok && (!e.ascii || harmless(l.text, fields)) {
			e.found, l.fields = fields[:0], fields
			e.filterRecord(l)
			return
		}
	}
	e.enter(nil)
	e.given = append(append(e.given[:0], l.text...), '\n')
	l.line = e.f.Line() + 1
	l.last = l.line + int64(bytes.Count(l.text, newline))
	e.out.begin(l)
	e.f.Write(e.given) // e.out keeps the writer's error
	e.endLine()
}

// endLine ends the current line of out.
func (e *Envelope) endLine() {
	e.out.end(e.done())
	if e.out.queued > maxQueued {
		e.f.Release()
		e.out.settled(e.done())
	}
	e.look()
	if cap(e.given) > maxScratch { // saves memory: there may be a thousand Envelopes
		e.given, e.text = nil, nil
	}
}

// marked reports whether text, a line or a part of a line, has a mark.
func (e *Envelope) marked(text []byte) bool {
	if !e.traces {
		return bytes.Contains(text, markupOpen)
	}
	n, _ := marks.Find(text)
	return n < len(text)
}

// hold keeps a part of a line until the line is whole.
func (e *Envelope) hold(s *stream, p part, text, line []byte) {
	s.begun = true
	s.parts = append(s.parts, p.clone())
	from := max(0, len(s.text)-(len(markupOpen)-1)) // a mark may begin in the previous part
	s.text = append(s.text, text...)
	s.searched += len(s.text) - from
	s.marked = s.marked || e.marked(s.text[from:])
	s.ends = append(s.ends, len(s.text))
	s.raw = append(s.raw, line...)
	s.rawEnds = append(s.rawEnds, len(s.raw))
}

// join joins the held parts of a line, if any, and gives the line to the filter. The line has no
// line end if the log ends after the last part.
func (e *Envelope) join(s *stream) {
	n := len(s.parts)
	if n == 0 {
		return
	}
	l := seal{
		parts: s.parts, out: s.out, raw: s.raw,
		text:  append(s.out[:len(s.out):len(s.out)], s.text...),
		open:  !s.parts[n-1].whole,
		noEnd: s.raw[len(s.raw)-1] != '\n',
	}
	*s = stream{}
	e.filterLine(&l)
}

// passOn prints held parts without a mark unchanged: they were held because they end with a brace
// or an ESC. Callers call it before they print or hold a line, so lines without markup keep their
// order. The parameter but is the stream of that line, or nil. The parts of this stream stay held.
func (e *Envelope) passOn(but *stream, flush func()) {
	for i := range e.streams {
		s := &e.streams[i]
		if s == but || len(s.parts) == 0 || !e.pass || e.dict || s.marked {
			continue
		}
		flush()
		e.filterBare(s.raw)
		*s = stream{begun: true, out: append(s.out, s.text...)}
	}
}

// release filters each held part of an overlong line as a separate line.
func (e *Envelope) release(s *stream) {
	text, raw := 0, 0
	for i, p := range s.parts {
		e.filterLine(&seal{parts: []part{p}, text: s.text[text:s.ends[i]], raw: s.raw[raw:s.rawEnds[i]], open: !p.whole})
		text, raw = s.ends[i], s.rawEnds[i]
	}
	*s = stream{begun: true, long: true}
}

// ascii reports whether b has only printable ASCII.
func ascii(b []byte) bool {
	return !bytes.ContainsFunc(b, func(c rune) bool { return c < ' ' || c > '~' })
}
