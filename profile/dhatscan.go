package profile

import (
	"bytes"
	"io"
)

// A DHAT file is one JSON object (dhat/dh_main.c, "dhatFileVersion"). Of its members, these matter
// here; everything else is copied:
//
//	"cmd", "mode", "bklt"   texts and flags about the run
//	"pps"                   program points: objects with counts and, as "fs", a stack
//	"ftbl"                  the texts of the frames, to which the numbers of "fs" refer
//
// The frames come after the points that refer to them.

// Limits of a DHAT file.
const (
	maxDHATDepth = 64      // JSON values within values; 4 in DHAT's files
	maxDHATToken = 1 << 20 // bytes of a text, number or stack; a stack of 500 frames takes 4 KiB
	dhatBlock    = 256 << 10
)

// A dhatPart is a part of a DHAT file.
type dhatPart uint8

const (
	dhatText     dhatPart = iota // bytes without meaning here
	dhatMember                   // the value of a member of the file, as its text
	dhatCount                    // the value of a member of a point, as its text
	dhatStack                    // the array of frames of a point, as its text
	dhatPointEnd                 // the brace that ends a point
	dhatFrame                    // a text of the table of frames, with its quotation marks
	dhatTableEnd                 // the bracket that ends the table of frames
)

// The values of JSON that the scanner is within.
type dhatLevel uint8

const (
	dhatOther dhatLevel = iota
	dhatFile            // the object that is the file
	dhatPoints
	dhatPoint
	dhatTable
)

// A dhatScanner cuts a DHAT file into its parts. All bytes of the file are in exactly one part, in
// order. It does not check that the file is JSON: what it does not understand is text.
type dhatScanner struct {
	part func(p dhatPart, b []byte) error // b is valid during the call

	levels  []dhatLevel
	objects []bool // by level: it is an object
	key     []byte // of the current member
	isKey   bool   // the next text is the name of a member
	over    bool   // the file's object has ended
	lost    bool   // the file has other brackets than JSON, and what follows is text
	tail    []byte // bytes of an unfinished token
	joined  []byte // scratch: the tail and the bytes after it
	inLong  bool   // within a text that is longer than maxDHATToken
}

// scan passes all of r to part. An error is that of r or of part.
func (s *dhatScanner) scan(r io.Reader) error {
	buf := make([]byte, dhatBlock)
	for {
		n, err := io.ReadFull(r, buf) // an unfinished token is scanned once for each block
		if n > 0 {
			if err := s.write(buf[:n], false); err != nil {
				return err
			}
		}
		switch {
		case err == io.EOF || err == io.ErrUnexpectedEOF:
			return s.write(nil, true)
		case err != nil:
			return err
		}
	}
}

// isWhole reports whether the file's object has ended.
func (s *dhatScanner) isWhole() bool { return s.over && !s.lost }

// write scans the next bytes; final is set if none follow.
func (s *dhatScanner) write(p []byte, final bool) error {
	if len(s.tail) > 0 {
		s.joined = append(append(s.joined[:0], s.tail...), p...)
		p = s.joined
	}
	text := 0 // begin of the bytes without meaning
	give := func(part dhatPart, from, to int) error {
		if text < from {
			if err := s.part(dhatText, p[text:from]); err != nil {
				return err
			}
		}
		text = to
		return s.part(part, p[from:to])
	}
	i := 0
	if s.inLong {
		if i = s.endLong(p); i < 0 {
			i = len(p)
		}
	}
	for i < len(p) {
		if s.over || s.lost {
			i = len(p)
			break
		}
		n, part := 1, dhatText
		switch c := p[i]; c {
		case ' ', '\t', '\r', '\n', ':':
		case ',':
			s.isKey = s.inObject()
		case '{':
			s.open(c)
		case '}', ']':
			part = s.close(c)
		case '[':
			if s.level() == dhatPoint && string(s.key) == "fs" {
				if n = bytes.IndexByte(p[i:], ']') + 1; n > 0 {
					part = dhatStack
				}
			} else {
				s.open(c)
			}
		case '"':
			n = textLength(p[i:])
		default:
			n = bytes.IndexAny(p[i:], ",]}: \t\r\n\"[{")
			if n < 0 && final {
				n = len(p) - i
			}
			part = s.valuePart()
		}
		if n <= 0 { // the token is unfinished
			if len(p)-i < maxDHATToken && !final {
				break
			}
			if p[i] == '"' {
				s.inLong = true
			} else {
				s.lost = true
			}
			i = len(p)
			break
		}
		if p[i] == '"' {
			if s.isKey && s.inObject() {
				s.key, s.isKey = append(s.key[:0], p[i+1:i+n-1]...), false
			} else {
				part = s.valuePart()
				if s.level() == dhatTable {
					part = dhatFrame
				}
			}
		}
		if part != dhatText {
			if err := give(part, i, i+n); err != nil {
				return err
			}
		}
		i += n
	}
	if text < i {
		if err := s.part(dhatText, p[text:i]); err != nil {
			return err
		}
	}
	s.tail = append(s.tail[:0], p[i:]...)
	return nil
}

// textLength returns the length of the text at the beginning of b, with its quotation marks; 0 if
// its end is missing.
func textLength(b []byte) int {
	for i := 1; i < len(b); i++ {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return 0
		}
		i += n
		slashes := 0
		for b[i-1-slashes] == '\\' {
			slashes++
		}
		if slashes%2 == 0 {
			return i + 1
		}
	}
	return 0
}

// endLong returns the index after the end of a long text; -1 if it is not in p. An escaped mark
// ends it too, which only makes the rest of a file that is not DHAT's text.
func (s *dhatScanner) endLong(p []byte) int {
	i := bytes.IndexByte(p, '"')
	s.inLong = i < 0
	if s.inLong {
		return -1
	}
	return i + 1
}

func (s *dhatScanner) level() dhatLevel {
	if len(s.levels) == 0 {
		return dhatOther
	}
	return s.levels[len(s.levels)-1]
}

func (s *dhatScanner) inObject() bool {
	return len(s.objects) > 0 && s.objects[len(s.objects)-1]
}

// valuePart returns the part that a text or number is.
func (s *dhatScanner) valuePart() dhatPart {
	switch s.level() {
	case dhatFile:
		return dhatMember
	case dhatPoint:
		return dhatCount
	}
	return dhatText
}

// open enters the value that begins with c.
func (s *dhatScanner) open(c byte) {
	level, object := dhatOther, c == '{'
	switch {
	case len(s.levels) == 0 && object:
		level = dhatFile
	case s.level() == dhatFile && !object && string(s.key) == "pps":
		level = dhatPoints
	case s.level() == dhatFile && !object && string(s.key) == "ftbl":
		level = dhatTable
	case s.level() == dhatPoints && object:
		level = dhatPoint
	}
	if len(s.levels) == maxDHATDepth || len(s.levels) == 0 && !object {
		s.lost = true
		return
	}
	s.levels, s.objects = append(s.levels, level), append(s.objects, object)
	s.isKey = object
}

// close leaves a value, and returns the part that its bracket c is.
func (s *dhatScanner) close(c byte) dhatPart {
	if len(s.levels) == 0 || s.inObject() != (c == '}') {
		s.lost = true
		return dhatText
	}
	level := s.level()
	s.levels, s.objects = s.levels[:len(s.levels)-1], s.objects[:len(s.objects)-1]
	s.isKey = false
	s.over = len(s.levels) == 0
	switch level {
	case dhatPoint:
		return dhatPointEnd
	case dhatTable:
		return dhatTableEnd
	}
	return dhatText
}

// parseStack appends the numbers of frames in the text of an array to dst; ok is false if it has
// anything else.
func parseStack(dst []uint32, text []byte) (stack []uint32, ok bool) {
	n, digits, comma := uint64(0), 0, false
	for _, c := range text[1:] {
		switch {
		case '0' <= c && c <= '9':
			if n, digits = n*10+uint64(c-'0'), digits+1; digits > 9 {
				return dst, false
			}
			comma = false
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
		case c == ',' && digits > 0:
			dst = append(dst, uint32(n))
			n, digits, comma = 0, 0, true
		case c == ']' && (digits > 0 || len(dst) == 0 && !comma):
			if digits > 0 {
				dst = append(dst, uint32(n))
			}
			return dst, true
		default:
			return dst, false
		}
	}
	return dst, false
}
