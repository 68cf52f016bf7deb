package filter

import (
	"bytes"
	"slices"

	"github.com/symfilter/symfilter/markup"
)

// A splitter makes pieces of the current line.
type splitter struct {
	color        Color
	scan         markup.Scanner
	pieces       []piece
	firstElement int // index in pieces of the first element; -1 without one

	elements int // of all lines

	// steps counts the work on lines with marks: bytes scanned, moved and kept, pieces looked at.
	// Nothing depends on it: tests hold it against the length of the lines. A plain line takes
	// none.
	steps int64
}

// tokens splits text into s.pieces.
func (s *splitter) tokens(text []byte) {
	s.pieces = s.pieces[:0]
	s.steps += int64(len(text))
	s.scan.Reset(text)
	for {
		t, ok := s.scan.Next()
		if !ok {
			return
		}
		if len(s.pieces) == maxPieces {
			s.pieces = append(s.pieces, piece{Token: markup.Token{Raw: text[t.Off:], Off: t.Off}})
			return
		}
		if t.Tag == markup.TagSymbol && t.Kind == markup.Elem && literal(t.Fields) {
			t = markup.Token{Raw: t.Fields, Off: t.Off}
		}
		s.pieces = append(s.pieces, piece{Token: t})
	}
}

// oneFrame does what tokens does for a line with one backtrace element and no
// other mark, which most lines with markup are, in a third of the time.
// Otherwise it reports false and does nothing.
func (s *splitter) oneFrame(text []byte) bool {
	if s.color != ColorKeep {
		return false
	}
	open := bytes.Index(text, markupOpen)
	if open < 0 || bytes.IndexByte(text[:open], esc) >= 0 {
		return false
	}
	frame, n := markup.LeadingBT(text[open:])
	rest := text[open+n:]
	if n == 0 || len(rest) > 0 && bytes.Contains(rest, markupOpen) {
		return false
	}
	s.pieces = s.pieces[:0]
	if open > 0 {
		s.addPiece().Raw = text[:open]
	}
	p := s.addPiece()
	p.Kind = markup.Elem
	p.Tag = markup.TagBT
	p.Raw = text[open : open+n]
	p.Off = open
	p.frame = frame
	p.parsed = true
	if len(rest) > 0 {
		p := s.addPiece()
		p.Raw = rest
		p.Off = open + n
	}
	return true
}

// addPiece adds an empty piece, which is filled in place: copying pieces shows
// in the time of a hot frame.
func (s *splitter) addPiece() *piece {
	n := len(s.pieces)
	if n == cap(s.pieces) {
		s.pieces = slices.Grow(s.pieces, 8)
	}
	s.pieces = s.pieces[:n+1]
	p := &s.pieces[n]
	*p = piece{}
	return p
}

// literal reports whether a symbol with these fields is a [markup.Writer]'s
// form of text that looks like markup.
func literal(fields []byte) bool {
	return len(fields) > 0 && (fields[0] == '{' || fields[0] == esc) && markup.Symbol{Name: string(fields)}.Literal()
}

// splitLine returns a line's text and its line end: "\n", "\r\n" or nothing.
func splitLine(b []byte) (text, eol []byte) {
	n := len(b)
	if n > 0 && b[n-1] == '\n' {
		n--
		if n > 0 && b[n-1] == '\r' {
			n--
		}
	}
	return b[:n], b[n:]
}

// standsAlone reports whether an element, the only presentation element of
// its line or a hexdict, stands behind a log prefix or nothing, and not in a
// sentence: a sentence's text before it ends in a lower-case letter or a
// comma, or begins with the "SUMMARY: " of the sanitizers ("SUMMARY:
// AddressSanitizer: SEGV").
func (s *splitter) standsAlone(element *piece) bool {
	sentence := false
	for i := range s.pieces {
		p := &s.pieces[i]
		if p == element {
			break
		}
		s.steps += int64(1 + len(p.Raw))
		if p.Kind != markup.Text {
			continue
		}
		if bytes.Contains(p.Raw, []byte("SUMMARY: ")) {
			return false
		}
		if t := bytes.TrimRight(p.Raw, " \t"); len(t) > 0 {
			c := t[len(t)-1]
			sentence = 'a' <= c && c <= 'z' || c == ','
		}
	}
	return !sentence
}

// prefixOf returns the text before a hexdict of the line at work, to be
// repeated before its footnotes, with its colours only if they are followed; nothing where that is no log prefix.
func (s *splitter) prefixOf(to *piece) []byte {
	if !s.standsAlone(to) {
		return nil
	}
	var b []byte
	for i := range s.pieces {
		p := &s.pieces[i]
		if p == to {
			break
		}
		if p.Kind == markup.Elem || len(b)+len(p.Raw) > maxRepeat {
			return nil
		}
		b = append(b, p.Raw...)
	}
	s.steps += int64(len(b))
	if s.color != ColorAlways {
		return withoutColor(b)
	}
	return b
}
