package filter

import (
	"bytes"
	"slices"

	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/markup"
)

type splitter struct {
	color        Color
	scan         markup.Scanner
	pieces       []piece
	firstElement int // index in pieces of the first element; -1 if there is none

	elements int // well-formed elements and raw frames so far

	// steps counts the work on lines with marks: bytes scanned, moved and kept, and pieces
	// examined. Only tests read it, to compare it with the lengths of the lines. A plain line takes
	// no step.
	steps int64
}

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
			rest := text[t.Off:]
			if s.color == ColorNever || s.color == ColorForPrinter {
				rest = layout.WithoutColor(rest)
			}
			s.pieces = append(s.pieces, piece{Token: markup.Token{Raw: rest, Off: t.Off}})
			return
		}
		if t.Tag == markup.TagSymbol && t.Kind == markup.Elem && literal(t.Fields) {
			t = markup.Token{Raw: t.Fields, Off: t.Off}
		}
		s.pieces = append(s.pieces, piece{Token: t})
	}
}

// oneFrame is a fast path of tokens for a line with one backtrace element and no other mark. Most
// lines with markup have this form, and take a third of the time. oneFrame also counts the element.
// For other lines it returns false and changes nothing.
func (s *splitter) oneFrame(text []byte) bool {
	if s.color != ColorKeep && (s.color != ColorForPrinter || bytes.IndexByte(text, esc) >= 0) {
		return false
	}
	open := bytes.Index(text, markupOpen)
	if open < 0 || bytes.IndexByte(text[:open], esc) >= 0 {
		return false
	}
	frame, message, n := markup.LeadingBT(text[open:])
	rest := text[open+n:]
	if n == 0 || len(rest) > 0 && bytes.Contains(rest, markupOpen) {
		return false
	}
	s.pieces = s.pieces[:0]
	s.firstElement = 0
	if open > 0 {
		s.addPiece().Raw = text[:open]
		s.firstElement = 1
	}
	s.elements++
	s.steps += int64(len(text))
	p := s.addPiece()
	p.Kind = markup.Elem
	p.Tag = markup.TagBT
	p.Raw = text[open : open+n]
	p.Off = open
	p.Fields = message
	p.frame = frameFields{frame.Frame, frame.Addr, frame.Kind}
	p.parsed = true
	if len(rest) > 0 {
		p := s.addPiece()
		p.Raw = rest
		p.Off = open + n
	}
	return true
}

// addPiece adds an empty piece, which the caller fills in place: copying pieces would measurably
// slow down hot frames.
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

// literal reports whether a symbol with these fields is plain text. [markup.Writer] writes text
// that looks like markup as a symbol.
func literal(fields []byte) bool {
	return len(fields) > 0 && (fields[0] == '{' || fields[0] == esc) && markup.Symbol{Name: string(fields)}.Literal()
}

// standsAlone reports whether an element begins its line, or follows only a log prefix. Otherwise
// the element is part of a sentence. The caller passes a hexdict, or the only presentation element
// in a line. Text that ends in a lower-case letter or a comma, or contains the "SUMMARY: " of the
// sanitizers, is not a log prefix.
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

// prefixOf returns the log prefix before a hexdict in the current line, for its footnotes. It
// returns nil if the text is not a log prefix, or is too long to be repeated. The prefix has colour
// sequences only if colours are followed.
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
		return layout.WithoutColor(b)
	}
	return b
}
