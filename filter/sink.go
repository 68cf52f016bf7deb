package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/markup"
)

// Text prints p, which is never interpreted: "{{{" in it is text. It is part
// of [markup.Sink]. Lines are laid out when they are whole, so what follows
// the last line end in p waits for more, or for Close.
//
// Text and Element must not be mixed with Write within a line.
func (f *Filter) Text(p []byte) error {
	if i := bytes.LastIndexByte(p, '\n') + 1; i > 0 && len(f.sunk) == 0 && !f.sunkPart && f.o.Color == ColorKeep {
		f.plain(p[:i], bytes.Count(p[:i], newline))
		p = p[i:]
	}
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			f.sink(p)
			break
		}
		text, eol := splitLine(p[:i+1])
		f.sink(text)
		f.endSunk(eol)
		p = p[i+1:]
	}
	f.send()
	return f.err
}

// Element resolves and prints e. It is part of [markup.Sink]; see Text.
func (f *Filter) Element(e markup.Element) error {
	if s, ok := e.(markup.Symbol); ok && s.Literal() {
		f.sink([]byte(s.Name))
		return f.err
	}
	f.sunk = append(f.sunk, piece{Token: markup.Token{Kind: markup.Elem, Tag: tagOf(e)}, elem: e})
	if f.sunkSize += minPiece; f.sunkSize > maxLine {
		f.endSunk(nil)
	}
	return f.err
}

// minPiece is what an element counts towards maxLine.
const minPiece = 16

// sink keeps text for the line at work. A line that is too long is laid out
// in parts.
func (f *Filter) sink(p []byte) {
	if len(p) > 0 {
		n := len(f.sunkText)
		f.sunkText = append(f.sunkText, p...)
		f.sunk = append(f.sunk, piece{Token: markup.Token{Kind: markup.Text, Raw: f.sunkText[n:len(f.sunkText):len(f.sunkText)]}})
	}
	if f.sunkSize += len(p); f.sunkSize > maxLine {
		f.endSunk(nil)
	}
}

// endSunk lays out the line that came through the Sink methods.
func (f *Filter) endSunk(eol []byte) {
	if len(f.sunk) == 0 && len(eol) == 0 {
		return
	}
	if !f.sunkPart {
		f.line++
	}
	f.printOf(f.line)
	f.now, f.looked = 0, 0
	f.sunkPart = len(eol) == 0
	f.pieces = append(f.pieces[:0], f.sunk...)
	clear(f.sunk)
	f.sunk, f.sunkSize = f.sunk[:0], 0
	f.linePieces(eol)
	if f.sunkText = f.sunkText[:0]; cap(f.sunkText) > outputChunk {
		f.sunkText = nil
	}
	f.sendLarge()
}
