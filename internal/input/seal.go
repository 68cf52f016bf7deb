package input

import (
	"bytes"
	"cmp"
	"io"
	"slices"

	"github.com/symfilter/symfilter/internal/escape"
)

// A seal holds the envelope of one or several lines of the filter, and the filter's output for
// them.
type seal struct {
	// line numbers in the filter; the text of a Docker entry may have several lines
	line, last int64
	parts      []part // parts of the container's line, in order
	out        []byte // printed text of the line
	text       []byte // text given to the filter
	raw        []byte // input lines of text
	open       bool   // the container's line continues after this one
	noEnd      bool   // the log ends with this line, without a line end
	got        []byte // output for the line so far
	// the output is too large or invalid: its start was printed early, or the record will be
	// printed unchanged
	cut    bool
	fields []field // fields of a record; nil: not a record
	// part of a record that a page or a journal shows before each line; nil until needed
	prefix []byte
	field  int // first field whose output may be incomplete
}

// chunkSize is the size of the blocks that container runtimes read. In a line of several parts, no
// part has more text.
const chunkSize = 16 << 10 // bytes

// A sealer puts the filter's output into envelopes, and prints it.
type sealer struct {
	w    io.Writer
	c    container
	term bool // the output is a terminal
	err  error
	// the filter prints objects with the envelope as members, or a Printer's output without
	// envelopes
	records bool
	lines   bool // journal messages are lines of text
	json    bool // journal messages are objects
	midLine bool // the output ends within a line; updated only if lines is set

	cur    *seal   // current line; nil if it has no envelope
	queue  []*seal // lines without complete output, in order
	queued int     // approximate bytes of queue
	got    []byte  // scratch: output for the current line
	record []byte  // scratch: a record in a line of a container

	buf []byte // output not written to w yet
	// buf ends with the log's last line, without a line end; a line of the other stream may follow
	bare bool
}

const (
	// a longer span is written from the caller's block, uncopied
	directSize = 32 << 10
	bufSize    = 256 << 10 // bytes written at once
	gotSize    = 1 << 20   // bytes of output kept for an unfinished line
)

// sealOf returns the envelope of the line that has this number in the filter, or nil.
func (s *sealer) sealOf(line int64) *seal {
	if s.cur.has(line) {
		return s.cur
	}
	n, _ := slices.BinarySearchFunc(s.queue, line, func(l *seal, line int64) int { return cmp.Compare(l.last, line) })
	if n < len(s.queue) && s.queue[n].has(line) {
		return s.queue[n]
	}
	return nil
}

// seal.has reports whether l, which may be nil, is the envelope of this line.
func (l *seal) has(line int64) bool { return l != nil && l.line <= line && line <= l.last }

// emit receives p, the filter's output for a line.
func (s *sealer) emit(line int64, p []byte) error {
	s.settle(line)
	l := s.sealOf(line)
	if s.lines {
		s.printLines(l, p)
		return s.err
	}
	if l == nil || s.records {
		s.print(p)
		return s.err
	}
	if l.fields != nil {
		l.take(line, p)
		return s.err
	}
	l.got = append(l.got, p...)
	if len(l.got) > gotSize {
		s.spill(l)
	}
	return s.err
}

// prefix appends the part of a line's envelope that a page shows.
func (s *sealer) prefix(dst []byte, line int64) []byte {
	l := s.sealOf(line)
	if l == nil {
		return dst
	}
	if len(l.parts) > 0 {
		dst = s.c.prefix(dst, l.parts[0])
	}
	if len(l.fields) > 0 && l.prefix == nil { // computed once, since a record may have many lines
		record := l.raw
		if len(l.parts) > 0 {
			record = l.text
		}
		l.prefix = appendRecordPrefix([]byte{}, record, l.fields)
	}
	return append(dst, l.prefix...)
}

// members appends the members of a line's envelope to its object.
func (s *sealer) members(dst []byte, line int64) []byte {
	l := s.sealOf(line)
	if l == nil {
		return dst
	}
	if len(l.parts) > 0 {
		dst = s.c.fields(dst, l.parts[0])
	}
	if s.json {
		return append(dst, l.prefix...)
	}
	for i := range l.fields {
		if f := &l.fields[i]; line <= f.last {
			if f.name != "" {
				dst, _ = escape.AppendString(append(dst, `,"field":`...), f.name)
			}
			break
		}
	}
	return dst
}

// endBare adds the missing line end of the last line: another line follows.
func (s *sealer) endBare() {
	if s.bare {
		s.buf = append(s.buf, '\n')
		s.bare = false
	}
}

func (s *sealer) print(b []byte) {
	s.endBare()
	if len(b) < directSize {
		s.buf = append(s.buf, b...)
		if len(s.buf) >= bufSize {
			s.flush()
		}
		return
	}
	s.flush()
	s.write(b)
}

func (s *sealer) flush() {
	s.write(s.buf)
	s.buf = s.buf[:0]
	if cap(s.buf) > 2*bufSize {
		s.buf = nil
	}
}

func (s *sealer) write(b []byte) {
	if len(b) == 0 || s.err != nil {
		return
	}
	if n, err := s.w.Write(b); err != nil {
		s.err = err
	} else if n != len(b) {
		s.err = io.ErrShortWrite
	}
}

func (s *sealer) begin(l *seal) {
	l.got = s.got[:0]
	s.cur = l
}

// end ends the current line. done and module are the results of Envelope.done. The module line that
// the filter holds is the current line, or an earlier line with which the current line may have
// been merged.
func (s *sealer) end(done, module int64) {
	l := s.cur
	s.cur = nil
	switch {
	case l.last > done || module >= l.line || l.last < l.line && len(s.queue) > 0:
		s.enqueue(l.clone(l.last > done))
		s.settled(done, module)
		return
	case module > 0: // the line has merged into the module line
		return
	}
	s.settle(l.line)
	s.finish(l)
	if s.got = l.got; cap(s.got) > maxScratch {
		s.got = nil
	}
}

// settled finishes the queued lines whose output is complete. done and module are the same as for
// end.
func (s *sealer) settled(done, module int64) {
	if module > 0 {
		s.settle(min(module, done+1))
	} else {
		s.settle(done + 1)
	}
}

func (s *sealer) enqueue(l *seal) {
	s.queue = append(s.queue, l)
	s.queued += l.size()
}

// settle finishes the queued lines before this line number, which the filter has printed.
func (s *sealer) settle(line int64) {
	n := 0
	for n < len(s.queue) && s.queue[n].last < line {
		s.queued -= s.queue[n].size()
		s.finish(s.queue[n])
		n++
	}
	s.queue = slices.Delete(s.queue, 0, n)
}

// size returns the approximate bytes of l in the queue, without its output.
func (l *seal) size() int { return 256 + 2*len(l.raw) }

// finish prints a line whose output is complete.
func (s *sealer) finish(l *seal) {
	n := len(l.text)
	switch {
	case s.records:
	case l.fields != nil:
		s.finishRecord(l)
	case len(l.got) == 0 && len(l.out) == 0:
	case !l.cut && len(l.raw) > 0 && len(l.got) == n+1 && l.got[n] == '\n' && bytes.HasPrefix(l.got, l.text):
		s.print(l.raw)
		s.bare = l.noEnd
	case !l.cut && len(l.out) > 0 && !bytes.HasPrefix(l.got, l.out):
		if len(l.got) == 0 { // an elided line whose start was already printed
			l.got = append(l.got, '\n')
		}
		l.out = nil
		s.seal(l, l.got, true)
	default:
		s.seal(l, l.got[min(len(l.out), len(l.got)):], true)
	}
}

// spill prints a part of a line's output that is too large to be kept until the line is complete.
func (s *sealer) spill(l *seal) {
	n := bytes.LastIndexByte(l.got, '\n') + 1
	if n == 0 {
		n = len(l.got) - escape.CutRune(l.got)
	}
	out := l.out
	if l.out = nil; l.cut || !bytes.HasPrefix(l.got, out) {
		out = nil
	}
	l.cut = true
	s.seal(l, l.got[len(out):n], false)
	l.got = append(l.got[:0], l.got[n:]...)
}

// seal prints lines in the envelope of l. last is set if the container's line ends with lines.
func (s *sealer) seal(l *seal, lines []byte, last bool) {
	for len(lines) > 0 {
		text, rest, ended := bytes.Cut(lines, []byte{'\n'})
		lines = rest
		s.endBare()
		k := 0
		for (len(l.parts) > 1 || len(text) > gotSize) && len(text) > chunkSize {
			n := chunkSize - escape.CutRune(text[:chunkSize])
			s.buf = s.c.seal(s.buf, l.parts[min(k, len(l.parts)-1)], text[:n], false, s.term)
			text = text[n:]
			k++
		}
		final := last && len(rest) == 0
		s.buf = s.c.seal(s.buf, l.parts[min(k, len(l.parts)-1)], text, ended && !(final && l.open), s.term)
		if final && l.noEnd {
			s.buf = s.buf[:len(s.buf)-1]
			s.bare = true
		}
		if len(s.buf) >= bufSize {
			s.flush()
		}
	}
}

// clone returns a copy that shares no bytes with the log's block. For a record, or if raw is set,
// the copy includes the text and the input lines, and can be printed unchanged.
func (l *seal) clone(raw bool) *seal {
	c := *l
	c.parts, c.out, c.got, c.text, c.raw = nil, bytes.Clone(l.out), bytes.Clone(l.got), nil, nil
	if raw || l.fields != nil {
		c.text, c.raw = bytes.Clone(l.text), bytes.Clone(l.raw)
	}
	c.fields = slices.Clone(l.fields)
	for i := range c.fields {
		c.fields[i].text = bytes.Clone(c.fields[i].text)
	}
	for _, p := range l.parts {
		c.parts = append(c.parts, p.clone())
	}
	return &c
}

func (p part) clone() part {
	p.head, p.tail = bytes.Clone(p.head), bytes.Clone(p.tail)
	return p
}
