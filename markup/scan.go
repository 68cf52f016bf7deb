package markup

import "bytes"

// TokenKind is the kind of a token.
type TokenKind uint8

const (
	Text TokenKind = iota // to be shown unchanged
	SGR                   // a colour sequence, ESC [ parameters m
	Elem                  // an element: Parse succeeds unless the tag is TagUnknown
)

// A Token is a part of a line.
type Token struct {
	Kind TokenKind

	// Tag is the tag of an element. If text begins like a known element but is malformed, only its
	// opening braces become a token: a Text token with this tag. Err is the reason. Err is nil for
	// a hexdict without an end on this line: the hexdict may continue on the next lines, up to the
	// first with a '}'.
	Tag Tag

	Raw    []byte // the bytes of the token, which alias the line
	Fields []byte // bytes between "tag:" and "}}}" of an element; nil if there is no colon
	Off    int    // offset of Raw in the line
	Err    *SyntaxError
	_      [8]byte
}

// A Scanner splits one line, with or without its line end, into tokens. The Raw bytes of all tokens
// together are the line. A Scanner allocates only errors. The zero value scans an empty line. It is
// not safe for concurrent use.
//
// An element begins with "{{{", a tag of lower-case letters, and ':' or "}}}", and ends at the next
// "}}}". In any other run of braces, the first brace is text. An element with a single '}', more
// than 16 KiB or wrong fields is malformed. So is an element with another "{{{": its opening braces
// are text, so a valid element inside it is found. Only a symbol may have "{{{", if no element
// begins there. An element with an unknown tag becomes an Elem with TagUnknown, and a malformed
// element becomes text. Colour sequences and other elements inside of an element are not
// interpreted. A colour sequence has at most 64 parameter bytes: digits, ';' and ':'.
//
// Several lines may be given as one, to scan a hexdict that spans them.
type Scanner struct {
	line []byte
	pos  int // beginning of the next token

	// The offsets of the next "{{{", '}' and ESC, found at or after the position of the last
	// search; len(line) if there is none. They make a scan take linear time.
	open, brace, escape int

	// The token after a text that Next has returned. The token begins at pos. If end is 0, there is
	// no such token.
	held struct {
		kind   TokenKind
		tag    Tag
		end    int
		fields int // beginning of the fields; 0 if there are none
		err    *SyntaxError
	}
}

// Reset starts the scan of line, which the tokens will alias.
func (s *Scanner) Reset(line []byte) {
	s.line, s.pos = line, 0
	s.open, s.brace, s.escape = -1, -1, -1
	s.held.end = 0
}

// Next returns the next token, or false after the last.
func (s *Scanner) Next() (tok Token, ok bool) {
	// The token is filled in place, field by field: copying it would take a third of the time of a
	// short line.
	start := s.pos
	if s.held.end == 0 {
		if start == len(s.line) {
			return tok, false
		}
		if end := s.find(start); end > start {
			s.pos = end
			tok.Raw = s.line[start:end]
			tok.Off = start
			return tok, true
		}
	}
	f := &s.held
	tok.Kind = f.kind
	tok.Tag = f.tag
	tok.Raw = s.line[start:f.end]
	tok.Off = start
	tok.Err = f.err
	if f.fields > 0 {
		tok.Fields = s.line[f.fields : f.end-3]
	}
	s.pos = f.end
	f.end = 0
	return tok, true
}

// find stores the first token at or after i, other than text, in s.held. It returns the token's
// offset, or len(s.line) if there is no such token.
func (s *Scanner) find(i int) int {
	for ; ; i++ {
		i = min(s.nextOpen(i), s.nextEscape(i))
		if i == len(s.line) {
			return i
		}
		if s.line[i] == '{' {
			if s.element(i) {
				return i
			}
		} else if n := sgrLen(s.line[i:]); n > 0 {
			s.hold(SGR, NoTag, i+n, 0, nil)
			return i
		}
	}
}

func (s *Scanner) hold(kind TokenKind, tag Tag, end, fields int, err *SyntaxError) {
	h := &s.held
	h.kind = kind
	h.tag = tag
	h.end = end
	h.fields = fields
	h.err = err
}

// element puts the element that begins with the "{{{" at i, or the opening braces of a malformed
// one, into held. It returns false if these braces are text.
func (s *Scanner) element(i int) bool {
	t := tagEnd(s.line, i+3)
	if t < 0 {
		return false
	}
	tag := tagOf(s.line[i+3 : t])
	end := s.nextBrace(t)
	closed := hasBraces(s.line, end, '}')
	var err *SyntaxError
	switch {
	case closed && end+3-i <= maxElement && (s.nextOpen(t) >= end || tag == TagSymbol && !s.candidateIn(s.open, end)):
		at := 0
		var fields []byte
		if t < end {
			at = t + 1
			fields = s.line[at:end]
		}
		bad := check(tag, fields)
		if bad.expected == "" {
			s.hold(Elem, tag, end+3, at, nil)
			return true
		}
		err = bad.report(tag, fields, max(at, t))
	case tag == TagUnknown:
		return false
	case end == len(s.line):
		if tag != TagHexDict {
			err = newError(tag, end, "a closing }}} on the line", nil)
		}
	case !closed:
		err = newError(tag, end, "a closing }}}", s.line[end:min(end+3, len(s.line))])
	case end+3-i > maxElement:
		err = newError(tag, i, "at most 16 KiB", s.line[i:end+3])
	default:
		err = newError(tag, s.open, "a closing }}}", s.line[s.open:end+3])
	}
	s.hold(Text, tag, i+3, 0, err)
	return true
}

// candidateIn reports whether any "{{{" from offset i to offset end has the beginning of an
// element. There must be a "{{{" at i.
func (s *Scanner) candidateIn(i, end int) bool {
	for i < end {
		if tagEnd(s.line, i+3) >= 0 {
			return true
		}
		n := bytes.Index(s.line[i+1:end], []byte("{{{"))
		if n < 0 {
			break
		}
		i += 1 + n
	}
	return false
}

func (s *Scanner) nextOpen(i int) int {
	if s.open < i {
		s.open = index3(s.line, i)
	}
	return s.open
}

func (s *Scanner) nextBrace(i int) int {
	if s.brace < i {
		s.brace = indexByte(s.line, i, '}')
	}
	return s.brace
}

func (s *Scanner) nextEscape(i int) int {
	if s.escape < i {
		s.escape = indexByte(s.line, i, esc)
	}
	return s.escape
}

const esc = 0x1b

// indexByte returns the offset of the first c in b at or after i, or len(b).
func indexByte(b []byte, i int, c byte) int {
	if n := bytes.IndexByte(b[i:], c); n >= 0 {
		return i + n
	}
	return len(b)
}

// index3 returns the offset of the first "{{{" in b at or after i, or len(b). On short lines,
// mostly without a brace, it takes half the time of bytes.Index.
func index3(b []byte, i int) int {
	for {
		i = indexByte(b, i, '{')
		if i == len(b) || hasBraces(b, i, '{') {
			return i
		}
		i++
	}
}

// hasBraces reports whether b has three bytes c at i.
func hasBraces(b []byte, i int, c byte) bool {
	return i+2 < len(b) && b[i] == c && b[i+1] == c && b[i+2] == c
}

// tagEnd returns the end of the tag that begins at i, or -1 if no ':' or "}}}" follows a tag.
func tagEnd(b []byte, i int) int {
	end := i
	for end < len(b) && 'a' <= b[end] && b[end] <= 'z' {
		end++
	}
	if end > i && end < len(b) && (b[end] == ':' || hasBraces(b, end, '}')) {
		return end
	}
	return -1
}

// sgrLen returns the length of the colour sequence that begins with the ESC at b[0], or 0.
func sgrLen(b []byte) int {
	n := sgrParams(b)
	if 0 < n && n < len(b) && n-2 <= maxSGR && b[n] == 'm' {
		return n + 1
	}
	return 0
}

// sgrParams returns the end of the parameters of the control sequence that begins with the ESC at
// b[0], or 0 if none begins there. It reads at most maxSGR+1 bytes of parameters.
func sgrParams(b []byte) int {
	if len(b) < 2 || b[1] != '[' {
		return 0
	}
	n := 2
	for n < len(b) && n-2 <= maxSGR && ('0' <= b[n] && b[n] <= ';') { // digits, ':' and ';'
		n++
	}
	return n
}

// unfinishedSGR returns the length of the unfinished colour sequence at the end of b, at most 66
// bytes, or 0.
func unfinishedSGR(b []byte) int {
	end := b[max(0, len(b)-maxSGR-2):]
	i := bytes.LastIndexByte(end, esc)
	if i < 0 || i+1 < len(end) && sgrParams(end[i:]) != len(end)-i {
		return 0
	}
	return len(end) - i
}

// mayBecomeElement reports whether later bytes may change the tokens of an unfinished line: its end
// may become part of an element or a colour sequence.
func mayBecomeElement(tail []byte) bool {
	if n := len(tail); n > 0 && tail[n-1] == '{' {
		return true
	}
	if unfinishedSGR(tail) > 0 {
		return true
	}
	var s Scanner
	s.Reset(tail)
	for i := s.nextOpen(0); i < len(tail); i = s.nextOpen(i + 1) {
		if s.mayClose(i) {
			return true
		}
	}
	return false
}

// mayClose reports whether the "{{{" at i may begin an element that ends in later bytes. Unlike
// tagEnd, it accepts a tag at the end of the line, and an incomplete "}}}" after a tag.
func (s *Scanner) mayClose(i int) bool {
	t := i + 3
	for t < len(s.line) && 'a' <= s.line[t] && s.line[t] <= 'z' {
		t++
	}
	if t == len(s.line) {
		return true
	}
	if t == i+3 || s.line[t] != ':' && s.line[t] != '}' {
		return false
	}
	end := s.nextBrace(t)
	if rest := s.line[end:]; len(rest) > 2 || !bytes.HasPrefix([]byte("}}"), rest) {
		return false
	}
	if len(s.line)-i >= maxElement {
		return false
	}
	tag := tagOf(s.line[i+3 : t])
	return s.nextOpen(t) >= end || tag == TagSymbol && !s.candidateIn(s.open, end)
}
