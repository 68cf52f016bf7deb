package profile

import (
	"bytes"
	"io"
)

// A DHAT file is one JSON object (dhat/dh_main.c, "dhatFileVersion"). These of its members matter
// here, and all others are copied:
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

// A dhatPart is the kind of a part into which the scanner cuts a DHAT file.
type dhatPart uint8

const (
	dhatText     dhatPart = iota // bytes that are only copied
	dhatMember                   // JSON value of a member of the file's object
	dhatCount                    // JSON value of a member of a point
	dhatStack                    // JSON array of a point's frame numbers
	dhatPointEnd                 // the brace that ends a point
	dhatFrame                    // a text of the table of frames, with its quotation marks
	dhatTableEnd                 // the bracket that ends the table of frames
)

// A dhatLevel is the kind of a JSON value around the scanner's position.
type dhatLevel uint8

const (
	dhatOther dhatLevel = iota
	dhatFile            // the object that is the file
	dhatPoints
	dhatPoint
	dhatTable
)

// A dhatScanner cuts a DHAT file into its parts. Each byte of the file is in exactly one part,
// in order. The scanner does not check the JSON: unknown content is text.
type dhatScanner struct {
	part func(p dhatPart, b []byte) error // b is valid during the call

	levels  []dhatLevel
	objects []bool // by level: the value is an object, not an array
	key     []byte // key of the current member
	isKey   bool   // the next text is the name of a member
	over    bool   // the file's object has ended
	lost    bool   // the file deviates from DHAT's format, and the rest is text
	tail    []byte // bytes of an unfinished token
	joined  []byte // scratch: the tail and the bytes after it
	inLong  bool   // within a text that is longer than maxDHATToken
}

// scan passes all of r to part. It returns the first error of r or part.
func (s *dhatScanner) scan(r io.Reader) error {
	buf := make([]byte, dhatBlock)
	for {
		n, err := io.ReadFull(r, buf) // full blocks, since each scans an unfinished token again
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

// isWhole reports whether the file's object has ended without deviating from DHAT's format.
func (s *dhatScanner) isWhole() bool { return s.over && !s.lost }

// write scans the next bytes. final is set if none follow.
func (s *dhatScanner) write(p []byte, final bool) error {
	if len(s.tail) > 0 {
		s.joined = append(append(s.joined[:0], s.tail...), p...)
		p = s.joined
	}
	text, i := 0, 0 // the bytes from text to i are only copied
	if s.inLong {
		i = s.endLong(p)
	}
	for i < len(p) && !s.over && !s.lost && !s.inLong {
		n, part := s.token(p[i:])
		if n < 0 && final { // a number ends with the file
			n = len(p) - i
		}
		if n <= 0 {
			if len(p)-i < maxDHATToken && !final {
				break
			}
			s.giveUp(p[i])
			continue
		}
		if part != dhatText {
			if err := s.give(p[text:i], part, p[i:i+n]); err != nil {
				return err
			}
			text = i + n
		}
		i += n
	}
	if s.over || s.lost || s.inLong {
		i = len(p)
	}
	s.tail = append(s.tail[:0], p[i:]...)
	return s.give(p[text:i], dhatText, nil)
}

// give calls s.part for text, whose bytes are only copied, and then for b, which is a part of the
// given kind. It makes no call for an empty slice.
func (s *dhatScanner) give(text []byte, part dhatPart, b []byte) error {
	if len(text) > 0 {
		if err := s.part(dhatText, text); err != nil {
			return err
		}
	}
	if len(b) == 0 {
		return nil
	}
	return s.part(part, b)
}

// token returns the length and kind of the token at the beginning of p. The length is not
// positive if the token's end is missing.
func (s *dhatScanner) token(p []byte) (n int, part dhatPart) {
	switch c := p[0]; c {
	case ' ', '\t', '\r', '\n', ':':
		return 1, dhatText
	case ',':
		s.isKey = s.inObject()
		return 1, dhatText
	case '}', ']':
		return 1, s.close(c)
	case '{', '[':
		if c == '[' && s.level() == dhatPoint && string(s.key) == "fs" {
			return bytes.IndexByte(p, ']') + 1, dhatStack
		}
		s.open(c)
		return 1, dhatText
	case '"':
		n = textLength(p)
		if n > 0 && s.isKey && s.inObject() {
			s.key, s.isKey = append(s.key[:0], p[1:n-1]...), false
			return n, dhatText
		}
		if s.level() == dhatTable {
			return n, dhatFrame
		}
		return n, s.valuePart()
	}
	if s.level() == dhatTable { // later frames could not be numbered
		s.lost = true
	}
	return bytes.IndexAny(p, ",]}: \t\r\n\"[{"), s.valuePart()
}

// giveUp skips the token that begins with c, which is too long or has no end. It skips a text
// outside of the frame table to its end. For any other token, it sets lost: the rest of the file
// has no meaning, since later frames could not be numbered.
func (s *dhatScanner) giveUp(c byte) {
	if c == '"' && s.level() != dhatTable {
		s.inLong = true
	} else {
		s.lost = true
	}
}

// textLength returns the length of the text at the beginning of b, with its quotation marks. It
// returns 0 if the end is missing.
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

// endLong returns the index after the end of a long text, or the length of p if the end is not
// in p. An escaped quotation mark also ends the text; the bytes after it are scanned as tokens.
func (s *dhatScanner) endLong(p []byte) int {
	i := bytes.IndexByte(p, '"')
	s.inLong = i < 0
	if s.inLong {
		return len(p)
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

// valuePart returns the kind of part for a text or number at the current level.
func (s *dhatScanner) valuePart() dhatPart {
	switch s.level() {
	case dhatFile:
		return dhatMember
	case dhatPoint:
		return dhatCount
	}
	return dhatText
}

// open enters the value that begins with c. It sets lost if DHAT's format has no value there, or if
// values are too deep.
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
	if len(s.levels) == maxDHATDepth || len(s.levels) == 0 && !object || s.level() == dhatTable {
		s.lost = true
		return
	}
	s.levels, s.objects = append(s.levels, level), append(s.objects, object)
	s.isKey = object
}

// close leaves the value that the bracket c ends, and returns the kind of part of that bracket.
// It sets lost if c ends no value.
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

// parseStack appends the frame numbers in text, a JSON array, to dst, which is empty. ok is
// false unless all are numbers of at most nine digits.
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
