package markup

import "bytes"

// TokenKind says what a token is.
type TokenKind uint8

const (
	Text TokenKind = iota // shown as it is
	SGR                   // a colour sequence, ESC [ parameters m
	Elem                  // an element: Parse will succeed unless its tag is TagUnknown
)

// A Token is a part of a line.
type Token struct {
	Kind TokenKind

	// Tag is the element's. On a Text token it is that of a known element which opens here but is none, and Raw is its opening
	// braces alone: with an Err because it is malformed, without one because it is a hexdict without its end on this line; that
	// one may go on in the next lines, up to the first line with a '}'.
	Tag Tag

	Raw    []byte // the bytes of the token; aliases the line
	Fields []byte // an element's bytes between "tag:" and "}}}"; nil if there is no colon
	Off    int    // where Raw begins in the line
	Err    *SyntaxError
}

// A Scanner splits one line, with or without its line end, into tokens, without allocating: their Raw bytes concatenate to the
// line. The zero value scans an empty line.
//
// An element begins with "{{{", a tag of lower-case letters, and ':' or "}}}"; anything else behind the braces makes the first
// of them text. It ends at the next "}}}". One that holds a single '}', is longer than 16 KiB or has bad fields is malformed,
// as is one that holds another "{{{": its opening braces are text, and so a sound element inside it is found. Only a symbol
// may hold "{{{", if no element begins with it. An element with an unknown tag comes out as TagUnknown, a malformed one as text.
// Inside of an element, neither colour sequences nor other elements are interpreted.
//
// Several lines may be given as one, to scan a hexdict that spans them.
type Scanner struct {
	line []byte
	pos  int // where the next token begins, but for what is held

	// The next "{{{", '}' and ESC, each at or behind the position that it was last asked for; len(line) where there is none.
	// Remembering them keeps the scan linear.
	open, brace, escape int

	held    Token // comes next: it was found behind the text that was returned last
	holding bool
}

// Reset begins a line. The tokens alias it.
func (s *Scanner) Reset(line []byte) {
	*s = Scanner{line: line, open: -1, brace: -1, escape: -1}
}

// Next returns the next token, and false behind the last.
func (s *Scanner) Next() (Token, bool) {
	if s.holding {
		s.holding = false
		return s.held, true
	}
	start := s.pos
	if start == len(s.line) {
		return Token{}, false
	}
	for i := start; ; i++ {
		i = min(s.nextOpen(i), s.nextEscape(i))
		if i == len(s.line) {
			s.pos = i
			return Token{Raw: s.line[start:], Off: start}, true
		}
		tok, ok := s.at(i)
		if !ok {
			continue
		}
		s.pos = i + len(tok.Raw)
		if i == start {
			return tok, true
		}
		s.held, s.holding = tok, true
		return Token{Raw: s.line[start:i], Off: start}, true
	}
}

// at returns the token that begins with the ESC or "{{{" at i. Without one, that byte is text.
func (s *Scanner) at(i int) (Token, bool) {
	if s.line[i] == '{' {
		return s.element(i)
	}
	n := sgrLen(s.line[i:])
	return Token{Kind: SGR, Raw: s.line[i : i+n], Off: i}, n > 0
}

// element returns the element that begins with the "{{{" at i, or the opening braces of a malformed one.
func (s *Scanner) element(i int) (Token, bool) {
	t := tagEnd(s.line, i+3)
	if t < 0 {
		return Token{}, false
	}
	tag := tagOf(s.line[i+3 : t])
	end := s.nextBrace(t)
	closed := hasBraces(s.line, end, '}')
	var err *SyntaxError
	switch {
	case closed && end+3-i <= maxElement && (s.nextOpen(t) >= end || tag == TagSymbol && !s.candidateIn(s.open, end)):
		tok := Token{Kind: Elem, Tag: tag, Raw: s.line[i : end+3], Off: i}
		base := t
		if t < end {
			base = t + 1
			tok.Fields = s.line[base:end]
		}
		bad := check(tag, tok.Fields)
		if bad.expected == "" {
			return tok, true
		}
		err = bad.report(tag, tok.Fields, base)
	case tag == TagUnknown:
		return Token{}, false
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
	return Token{Tag: tag, Raw: s.line[i : i+3], Off: i, Err: err}, true
}

// candidateIn reports whether an element begins with one of the "{{{" from the one at i up to end.
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

// indexByte returns where c is in b, from i on, and len(b) if it is not.
func indexByte(b []byte, i int, c byte) int {
	if n := bytes.IndexByte(b[i:], c); n >= 0 {
		return i + n
	}
	return len(b)
}

// index3 returns where "{{{" is in b, from i on, and len(b) if it is not.
func index3(b []byte, i int) int {
	if n := bytes.Index(b[i:], []byte("{{{")); n >= 0 {
		return i + n
	}
	return len(b)
}

// hasBraces reports whether three of c stand at i.
func hasBraces(b []byte, i int, c byte) bool {
	return i+2 < len(b) && b[i] == c && b[i+1] == c && b[i+2] == c
}

// tagEnd returns the end of the tag that begins at i, and -1 if there is none with ':' or "}}}" behind it.
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

// sgrLen returns the length of the colour sequence that begins with the ESC at b[0], and 0 if there is none.
func sgrLen(b []byte) int {
	n := sgrParams(b)
	if 0 < n && n < len(b) && n-2 <= maxSGR && b[n] == 'm' {
		return n + 1
	}
	return 0
}

// sgrParams returns where the parameters end of the control sequence that begins with the ESC at b[0], or a little over the
// limit; and 0 if none begins here.
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

// MayBecomeElement reports whether the bytes that follow an unfinished line may make an element or a colour sequence of its end:
// whether what a Scanner says of it is not final.
func MayBecomeElement(tail []byte) bool {
	if n := len(tail); n > 0 && tail[n-1] == '{' {
		return true
	}
	if i := bytes.LastIndexByte(tail, esc); i >= 0 && i+maxSGR+2 >= len(tail) && (i+1 == len(tail) || sgrParams(tail[i:]) == len(tail)-i) {
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

// mayClose reports whether the "{{{" at i may be the beginning of an element that ends behind the line. All letters are counted
// as a tag: the closing braces may follow.
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
	if s.line[t] == '}' && end != t || len(s.line)-i >= maxElement {
		return false
	}
	tag := tagOf(s.line[i+3 : t])
	return s.nextOpen(t) >= end || tag == TagSymbol && !s.candidateIn(s.open, end)
}
