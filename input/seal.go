package input

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// A seal is one line for the filter, with the envelope of its output.
type seal struct {
	line  int64  // number of the line in the filter; the text of a Docker entry may have several lines
	parts []part // parts of the container's line, in order
	out   []byte // text of the line that was printed before, and must not be repeated
	text  []byte // text for the filter
	raw   []byte // the input lines of that text
	open  bool   // the container's line continues after it
	noEnd bool   // the log ends with the line, without a line end
	got   []byte // output of the filter for the line so far
	cut   bool   // the output is large: a part of it was printed already
}

// chunkSize is the largest text of a part in bytes, if a line has several parts: the size of the
// blocks that container runtimes read.
const chunkSize = 16 << 10 // bytes

// A sealer puts the output of the filter into envelopes, and prints it.
type sealer struct {
	w    io.Writer
	c    container
	term bool // the output is a terminal
	err  error
	// the filter prints objects, which have the envelope as members, or the output of a Printer,
	// which has no envelope
	records bool

	cur  *seal  // the current line; nil if it has no envelope
	held *seal  // the module line that the filter holds; nil if there is none, or it has no envelope
	got  []byte // scratch: output for the current line

	buf []byte // output that is not written to w yet
	// buf ends with the log's last line, without a line end; the line of another stream may follow
	bare bool
}

const (
	// bytes of a span above which it is written from the caller's block, not copied
	directSize = 32 << 10
	bufSize    = 256 << 10 // bytes that are written at once
	gotSize    = 1 << 20   // bytes of output for one line that are kept until the line is finished
)

// sealOf returns the envelope for a line number of the filter, or nil.
func (s *sealer) sealOf(line int64) *seal {
	switch {
	case s.held != nil && s.held.line == line:
		return s.held
	case s.cur != nil && s.cur.line <= line:
		return s.cur
	}
	return nil
}

// emit receives the filter's output for a line.
func (s *sealer) emit(line int64, p []byte) error {
	l := s.sealOf(line)
	switch {
	case l == nil || s.records:
		s.print(p)
		if l != nil && l == s.held {
			s.held = nil
		}
	case l == s.held:
		l.got = append(l.got, p...)
		s.endHeld()
	default:
		l.got = append(l.got, p...)
		if len(l.got) > gotSize {
			s.spill(l)
		}
	}
	return s.err
}

// members appends the members that the envelope of a line adds to its object.
func (s *sealer) members(dst []byte, line int64) []byte {
	if l := s.sealOf(line); l != nil {
		return s.c.fields(dst, l.parts[0])
	}
	return dst
}

// endBare adds the missing line end of the last line, since another line follows.
func (s *sealer) endBare() {
	if s.bare {
		s.buf = append(s.buf, '\n')
		s.bare = false
	}
}

// print prints b unchanged.
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

// begin makes l the current line.
func (s *sealer) begin(l *seal) {
	l.got = s.got[:0]
	s.cur = l
}

// end ends the current line. held is the number of the line that the filter holds now: the current
// line, an earlier one into which it may have merged, or 0.
func (s *sealer) end(held int64) {
	l := s.cur
	s.cur = nil
	if held >= l.line {
		s.held = l.clone()
		s.held.line = held
		return
	}
	if held == 0 {
		s.held = nil
	}
	n := len(l.text)
	switch {
	case held > 0, s.records, len(l.got) == 0 && len(l.out) == 0:
	case !l.cut && len(l.got) == n+1 && l.got[n] == '\n' && bytes.HasPrefix(l.got, l.text):
		s.print(l.raw)
		s.bare = l.noEnd
	case !l.cut && len(l.out) > 0 && !bytes.HasPrefix(l.got, l.out):
		if len(l.got) == 0 { // an elided line: its beginning was printed already
			l.got = append(l.got, '\n')
		}
		l.out = nil
		s.seal(l, l.got, true)
	default:
		s.seal(l, l.got[min(len(l.out), len(l.got)):], true)
	}
	if s.got = l.got; cap(s.got) > maxScratch {
		s.got = nil
	}
}

// endHeld prints the module line that the filter has held.
func (s *sealer) endHeld() {
	l := s.held
	s.held = nil
	s.seal(l, bytes.TrimPrefix(l.got, l.out), true)
}

// spill prints the output so far of a line with large output.
func (s *sealer) spill(l *seal) {
	n := bytes.LastIndexByte(l.got, '\n') + 1
	if n == 0 {
		n = len(l.got) - cutRune(l.got)
	}
	out := l.out
	if l.out = nil; l.cut || !bytes.HasPrefix(l.got, out) {
		out = nil
	}
	l.cut = true
	s.seal(l, l.got[len(out):n], false)
	l.got = append(l.got[:0], l.got[n:]...)
}

// seal prints lines in the envelope of l. last reports that they end the line.
func (s *sealer) seal(l *seal, lines []byte, last bool) {
	for len(lines) > 0 {
		text, rest, ended := bytes.Cut(lines, []byte{'\n'})
		lines = rest
		s.endBare()
		k := 0
		for (len(l.parts) > 1 || len(text) > gotSize) && len(text) > chunkSize {
			n := chunkSize - cutRune(text[:chunkSize])
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

// clone returns a copy that shares no bytes with the log's block. It has only the fields needed to
// print changed lines.
func (l *seal) clone() *seal {
	c := &seal{line: l.line, out: bytes.Clone(l.out), open: l.open, noEnd: l.noEnd, got: bytes.Clone(l.got)}
	for _, p := range l.parts {
		c.parts = append(c.parts, p.clone())
	}
	return c
}

func (p part) clone() part {
	p.head, p.tail = bytes.Clone(p.head), bytes.Clone(p.tail)
	return p
}

// cutRune returns the length of the unfinished rune at the end of b.
func cutRune(b []byte) int {
	for n := 1; n <= min(len(b), utf8.UTFMax-1); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-n:]) {
				return n
			}
			return 0
		}
	}
	return 0
}
