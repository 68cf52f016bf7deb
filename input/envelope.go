package input

import (
	"bytes"
	"cmp"
	"io"

	"github.com/symfilter/symfilter/filter"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/markup"
)

// An Envelope filters the log of a container, in the format of the Container
// Runtime Interface or of Docker's driver json-file: the filter is given what
// the container printed, and each line of the output has the envelope of the
// line that it was made from. What does not change comes out as it came, byte
// for byte, as do lines that have no envelope.
//
// Both formats cut long lines, and CRI those that are not finished yet. The
// parts are joined, separately for the container's two streams, where an element
// may be in them: then they come out when the line is whole. Parts without any
// go out at once.
type Envelope struct {
	docker bool // the format is Docker's
	c      container
	f      *filter.Filter
	out    sealer

	search bool // the filter need not look at lines without markup
	every  bool // each line is opened, not only those with markup
	pass   bool // parts without markup go out at once
	ascii  bool // nothing else may stand around the text: a terminal would obey it
	dict   bool // a hexdict is open: each line may be part of it
	hint   int
	doubt  bool // recognised by the head of an entry alone: the log may be another program's

	cut lines.Cutter

	streams [2]stream
	text    []byte // scratch: of a line that was quoted
	given   []byte // scratch: a line for the filter
}

// A stream is one of the container's two.
type stream struct {
	begun   bool   // a line has begun that is not whole yet
	long    bool   // it is longer than maxLine, or no line at all: its parts are lines of their own
	out     []byte // the text of its parts that are out already
	parts   []part // those that are held
	text    []byte // of these
	ends    []int  // of each in text
	raw     []byte // the lines that they came in
	rawEnds []int  // of each in raw
}

const (
	maxLine    = 1 << 20   // bytes of a line that is opened, and of the text of one that is joined
	maxHeld    = 2 << 20   // bytes of the parts of a line, as they came
	maxScratch = 128 << 10 // bytes of a buffer that is kept for other lines
)

var (
	markupOpen = []byte("{{{")
	newline    = []byte{'\n'}
)

// NewEnvelope returns an Envelope for logs of the format, CRI or Docker. It filters them with a Filter
// that has the options o; what comes out goes to w.
func NewEnvelope(format Format, o filter.Options, w io.Writer) *Envelope {
	e := &Envelope{cut: lines.Cutter{Max: maxLine}, c: cri, docker: format == Docker}
	if e.docker {
		e.c = docker
	}
	json := o.Output == filter.JSON
	e.every = json || format == Docker && o.Color != filter.ColorKeep
	e.pass = !json && o.Color == filter.ColorKeep && !o.Terminal
	e.ascii = o.Terminal
	e.search = o.Color == filter.ColorKeep
	e.out = sealer{w: w, c: e.c, json: json, term: o.Terminal}
	o.Emit = e.out.emit
	if members := o.Members; members != nil {
		o.Members = func(dst []byte, line int64) []byte { return e.out.members(members(dst, line), line) }
	} else {
		o.Members = e.out.members
	}
	e.f = filter.New(nil, o)
	return e
}

// Filter returns the Filter of the Envelope: to ask what stayed unresolved, not to write to.
func (e *Envelope) Filter() *filter.Filter { return e.f }

// Write filters p. When it returns, every complete line in p is at the writer,
// but for what the filter holds and for the parts of an unfinished line that may
// hold an element.
func (e *Envelope) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		var b []byte
		var kind lines.Kind
		switch b, kind, rest = e.cut.Block(rest); kind {
		case lines.Whole:
			e.block(b)
		case lines.Head:
			e.passOn(nil, func() {})
			e.asItCame(b)
		case lines.Rest:
			e.asItCame(b)
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
	tail, _ := e.cut.Finish()
	if len(tail) > 0 && e.line(tail, func() {}) {
		tail = nil
	}
	for i := range e.streams {
		e.join(&e.streams[i])
	}
	e.asItCame(tail) // last: it has no line end
	err := e.f.Close()
	e.out.flush()
	return cmp.Or(e.out.err, err)
}

// passUnfinished passes an unfinished last line on as it came. It is for a log that pauses within its
// first entry: nothing of that line is opened any more.
func (e *Envelope) passUnfinished() error {
	if tail, _ := e.cut.Unfinished(); len(tail) > 0 {
		e.passOn(nil, func() {})
		e.asItCame(e.cut.GiveUp())
		e.f.Flush() // its error is that of the writer, which e.out keeps
		e.out.flush()
	}
	return e.out.err
}

// asItCame gives b, whole lines or parts of a very long one, to the filter, and
// prints what comes as it is.
func (e *Envelope) asItCame(b []byte) {
	if len(b) == 0 {
		return
	}
	e.out.cur = nil
	e.f.Write(b) // its error is that of the writer, which e.out keeps
	e.dict = e.f.InDict()
}

// quick reports whether lines without markup may go out without being looked at.
func (e *Envelope) quick() bool {
	return !e.every && !e.dict && !e.streams[0].begun && !e.streams[1].begun
}

// settle looks at the first entry of a log that was recognised by the head of an entry alone. If its
// text lacks a line end, but is shorter than the lines that Docker cuts, the log is another program's:
// there each entry is a line.
func (e *Envelope) settle(b []byte) {
	line, _, _ := bytes.Cut(b, newline)
	p, text, ok := e.c.open(line, &e.text)
	if !ok {
		return
	}
	e.doubt = false
	if !p.whole && len(text) < chunkSize {
		for i := range e.streams {
			e.streams[i] = stream{begun: true, long: true}
		}
	}
}

// block filters b, which ends with a line end.
func (e *Envelope) block(b []byte) {
	if e.doubt {
		e.settle(b)
	}
	unfinished := -1
	raw, at := 0, 0 // b[raw:at] goes out as it came
	flush := func() {
		e.asItCame(b[raw:at])
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

// plain gives the lines that b begins with to the filter, up to the first with
// markup, and returns how many bytes they are.
func (e *Envelope) plain(b []byte) int {
	if len(b) == 0 {
		return 0
	}
	n, _ := filter.FindOpen(b)
	if n < len(b) {
		n = bytes.LastIndexByte(b[:n], '\n') + 1
	}
	if !e.search {
		e.asItCame(b[:n])
	} else if n > 0 {
		e.f.Text(b[:n]) // its error is that of the writer, which e.out keeps
	}
	return n
}

// line takes in a line. It reports false if that is to go out as it came;
// otherwise it has called flush before it changed anything.
func (e *Envelope) line(line []byte, flush func()) bool {
	var p part
	var text []byte
	ok := len(line) <= maxLine+1
	if ok {
		p, text, ok = e.c.open(bytes.TrimSuffix(line, newline), &e.text)
	}
	if !ok || e.ascii && !ascii(p.tail) {
		e.passOn(nil, flush)
		return false
	}
	s := &e.streams[0]
	if p.stderr {
		s = &e.streams[1]
	}
	e.passOn(s, flush)
	marked := e.every || e.dict || bytes.Contains(text, markupOpen)
	switch {
	case !s.begun && p.whole, s.long:
		s.begun = !p.whole
		s.long = s.long && s.begun
		if !marked {
			return false
		}
		flush()
		e.give(&seal{parts: []part{p}, text: text, raw: line, open: !p.whole, noEnd: line[len(line)-1] != '\n'})
	case !p.whole && !marked && e.pass && len(s.parts) == 0 && !markup.MayBecomeElement(text):
		s.begun = true
		if s.out = append(s.out, text...); len(s.out) > maxLine {
			*s = stream{begun: true, long: true}
		}
		return false
	case !p.whole:
		flush()
		s.hold(p, text, line)
		if len(s.out)+len(s.text) > maxLine || len(s.raw) > maxHeld {
			e.release(s)
		}
	case len(s.parts) == 0 && !marked:
		*s = stream{}
		return false
	default:
		flush()
		s.hold(p, text, line)
		e.join(s)
	}
	return true
}

// give gives the filter a line.
func (e *Envelope) give(l *seal) {
	e.given = append(append(e.given[:0], l.text...), '\n')
	l.line = e.f.Line() + 1
	e.out.begin(l)
	e.f.Write(e.given) // its error is that of the writer, which e.out keeps
	e.out.end(e.f.Held())
	e.dict = e.f.InDict()
	if cap(e.given) > maxScratch { // there may be a thousand of us
		e.given, e.text = nil, nil
	}
}

// hold keeps a part of a line until the line is whole.
func (s *stream) hold(p part, text, line []byte) {
	s.begun = true
	s.parts = append(s.parts, p.clone())
	s.text = append(s.text, text...)
	s.ends = append(s.ends, len(s.text))
	s.raw = append(s.raw, line...)
	s.rawEnds = append(s.rawEnds, len(s.raw))
}

// join gives the filter a line of which parts are held, if there are any. It has
// no end if the last of them has none: the log ends.
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
	e.give(&l)
}

// passOn prints parts of a line as they came that were held for a brace or an
// ESC at their end, because a line of another stream comes: without markup, the
// order stays.
func (e *Envelope) passOn(but *stream, flush func()) {
	for i := range e.streams {
		s := &e.streams[i]
		if s == but || len(s.parts) == 0 || !e.pass || e.dict || bytes.Contains(s.text, markupOpen) {
			continue
		}
		flush()
		e.asItCame(s.raw)
		*s = stream{begun: true, out: append(s.out, s.text...)}
	}
}

// release makes the held parts of a line that is too long lines of their own.
func (e *Envelope) release(s *stream) {
	text, raw := 0, 0
	for i, p := range s.parts {
		e.give(&seal{parts: []part{p}, text: s.text[text:s.ends[i]], raw: s.raw[raw:s.rawEnds[i]], open: !p.whole})
		text, raw = s.ends[i], s.rawEnds[i]
	}
	*s = stream{begun: true, long: true}
}

// ascii reports whether b holds nothing but printable ASCII.
func ascii(b []byte) bool {
	return !bytes.ContainsFunc(b, func(c rune) bool { return c < ' ' || c > '~' })
}
