package input

import (
	"bytes"
	"io"
	"unicode/utf8"
)

// A seal is what the output of one line of the container goes into: the
// envelope that it came in.
type seal struct {
	parts []part // of the line, in order
	out   []byte // text of the line that went out before, and is not to be repeated
	text  []byte // what the filter is given
	raw   []byte // how that came
	open  bool   // the container's line goes on behind it
	noEnd bool   // the log ends with it, without a line end
}

// chunkSize is the most of a line's text that an envelope has, if the line came
// in several: what container runtimes read at a time.
const chunkSize = 16 << 10 // bytes

// A sealer takes what the filter prints, and prints it in its envelopes.
type sealer struct {
	w    io.Writer
	c    container
	json bool // the filter prints objects, of which the envelope becomes a part
	term bool // the output is a terminal
	err  error

	cur  *seal  // of the line that the filter is given; nil: it is none, or goes out as it came
	got  []byte // what the filter has printed of it
	cut  bool   // it is much: some went out already
	left int    // lines of the module line that the filter holds: they come first
	held *seal  // of that; nil: it goes out as it is
	kept []byte // what has been printed of it

	buf  []byte // printed, not yet at w
	bare bool   // the log's last line is in it, without a line end; the line of another stream may follow
}

const (
	directSize = 32 << 10  // bytes; a longer span is written from the caller's block, not copied
	bufSize    = 256 << 10 // bytes that are written at once
	gotSize    = 1 << 20   // bytes printed for one line that are kept until it is done
)

// Write takes what the filter prints.
func (s *sealer) Write(p []byte) (int, error) {
	n := len(p)
	for s.left > 0 && len(p) > 0 {
		i := bytes.IndexByte(p, '\n') + 1
		if i > 0 {
			s.left--
		} else {
			i = len(p)
		}
		s.kept = append(s.kept, p[:i]...)
		if p = p[i:]; s.left == 0 {
			s.endHeld()
		}
	}
	switch {
	case len(p) == 0:
	case s.cur == nil:
		s.print(p)
	default:
		s.got = append(s.got, p...)
		if len(s.got) > gotSize {
			s.spill()
		}
	}
	return n, s.err
}

// endBare ends the line that has no end, since another follows.
func (s *sealer) endBare() {
	if s.bare {
		s.buf = append(s.buf, '\n')
		s.bare = false
	}
}

// print prints b as it is.
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

// begin makes l the line that the filter is given.
func (s *sealer) begin(l *seal) { s.cur, s.got, s.cut = l, s.got[:0], false }

// end ends that line. The filter now holds so many lines of a module: if what
// was held before is out, they are of this line.
func (s *sealer) end(holds int) {
	l := s.cur
	s.cur = nil
	waited := s.left > 0 // what was held is held yet: the line has merged into it
	s.left = holds
	if holds > 0 && !waited {
		s.held = l.clone()
		s.kept = append(s.kept[:0], s.got...)
		return
	}
	n := len(l.text)
	switch {
	case waited, len(s.got) == 0 && len(l.out) == 0:
	case !s.cut && !s.json && len(s.got) == n+1 && s.got[n] == '\n' && bytes.HasPrefix(s.got, l.text):
		s.print(l.raw)
		s.bare = l.noEnd
	case !s.cut && len(l.out) > 0 && (len(s.got) == 0 || !bytes.HasPrefix(s.got, l.out)):
		if len(s.got) == 0 { // an elided line: its beginning is out already
			s.got = append(s.got, '\n')
		}
		l.out = nil
		s.seal(l, s.got, true)
	default:
		s.seal(l, s.got[min(len(l.out), len(s.got)):], true)
	}
	if cap(s.got) > maxScratch {
		s.got = nil
	}
}

// endHeld prints the module line that the filter has held.
func (s *sealer) endHeld() {
	l := s.held
	s.held = nil
	switch {
	case l == nil:
		s.print(s.kept)
	case bytes.HasPrefix(s.kept, l.out):
		s.seal(l, s.kept[len(l.out):], true)
	default:
		s.seal(l, s.kept, true)
	}
	if s.kept = s.kept[:0]; cap(s.kept) > maxScratch {
		s.kept = nil
	}
}

// spill prints what there is of a line that comes to much.
func (s *sealer) spill() {
	n := bytes.LastIndexByte(s.got, '\n') + 1
	if n == 0 {
		n = len(s.got) - cutRune(s.got)
	}
	out := s.cur.out
	if s.cur.out = nil; s.cut || !bytes.HasPrefix(s.got, out) {
		out = nil
	}
	s.cut = true
	s.seal(s.cur, s.got[len(out):n], false)
	s.got = append(s.got[:0], s.got[n:]...)
}

// seal prints lines in the envelope of l. If they are the last of it, the log
// has no more of that line.
func (s *sealer) seal(l *seal, lines []byte, last bool) {
	for len(lines) > 0 {
		text, rest, ended := bytes.Cut(lines, []byte{'\n'})
		if lines = rest; s.json {
			s.sealObject(l, text, ended)
			continue
		}
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

// sealObject prints an object of the filter's with the members of the envelope
// behind its version.
func (s *sealer) sealObject(l *seal, object []byte, ended bool) {
	i := max(bytes.IndexByte(object, ','), 0)
	s.buf = append(s.buf, object[:i]...)
	if i > 0 {
		s.buf = s.c.fields(s.buf, l.parts[0])
	}
	s.buf = append(s.buf, object[i:]...)
	if ended {
		s.buf = append(s.buf, '\n')
	}
	if len(s.buf) >= bufSize {
		s.flush()
	}
}

// clone returns a copy that shares no bytes with the log's block. Only what is
// needed to print changed lines is kept.
func (l *seal) clone() *seal {
	c := &seal{out: bytes.Clone(l.out), open: l.open, noEnd: l.noEnd}
	for _, p := range l.parts {
		c.parts = append(c.parts, p.clone())
	}
	return c
}

func (p part) clone() part {
	p.head, p.tail = bytes.Clone(p.head), bytes.Clone(p.tail)
	return p
}

// cutRune returns the length of the unfinished rune that b ends with.
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
