package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/markup"
)

// Text prints p, without interpreting markup or colours in it. It is part of [markup.Sink]. A line
// is laid out when it is complete. The bytes after the last line end of p are kept until the rest
// of their line arrives, or until Close.
//
// Text and Element must not be mixed with Write within a line.
func (f *Filter) Text(p []byte) error {
	f.release()
	if i := bytes.LastIndexByte(p, '\n') + 1; i > 0 && len(f.sunk.pieces) == 0 && !f.sunk.part &&
		(f.o.Color == ColorKeep || f.o.Color == ColorForPrinter && bytes.IndexByte(p[:i], esc) < 0) {
		f.plain(p[:i], bytes.Count(p[:i], newline))
		f.tracer.keepPast(p[:i])
		p = p[i:]
	}
	for len(p) > 0 {
		i := bytes.IndexByte(p, '\n')
		if i < 0 {
			f.sinkText(p)
			break
		}
		text, eol := lines.CutEnd(p[:i+1])
		f.sinkText(text)
		f.endSunk(eol)
		p = p[i+1:]
	}
	f.send()
	return f.err
}

// Element adds e to the current line, which is resolved and printed when it is complete. Element is
// part of [markup.Sink]; see Text.
func (f *Filter) Element(e markup.Element) error {
	f.release()
	if s, ok := e.(markup.Symbol); ok && s.Literal() {
		f.sinkText([]byte(s.Name))
		return f.err
	}
	f.sunk.pieces = append(f.sunk.pieces, piece{Token: markup.Token{Kind: markup.Elem, Tag: tagOf(e)}, elem: e})
	if f.sunk.size += minPiece; f.sunk.size > maxLine {
		f.endSunk(nil)
	}
	return f.err
}

// sunkLine is the unfinished line of the Sink methods.
type sunkLine struct {
	pieces []piece
	text   []byte // text of the pieces
	size   int
	part   bool // a part of the line, which is too long, was already laid out
}

// minPiece is the number of bytes that each element adds to the size of the Sink methods' line,
// which maxLine bounds.
const minPiece = 16

// sinkText adds text to the unfinished line. It lays out a line that is too long in parts.
func (f *Filter) sinkText(p []byte) {
	if len(p) > 0 {
		n := len(f.sunk.text)
		f.sunk.text = append(f.sunk.text, p...)
		f.sunk.pieces = append(f.sunk.pieces, piece{Token: markup.Token{Kind: markup.Text, Raw: f.sunk.text[n:len(f.sunk.text):len(f.sunk.text)]}})
	}
	if f.sunk.size += len(p); f.sunk.size > maxLine {
		f.endSunk(nil)
	}
}

// endSunk lays out the pieces of the Sink methods' line: the whole line, or a part of it if eol is
// empty.
func (f *Filter) endSunk(eol []byte) {
	if len(f.sunk.pieces) == 0 && len(eol) == 0 {
		return
	}
	if !f.sunk.part {
		f.line++
	}
	f.printOf(f.line)
	f.dictLookups = 0
	if !f.inBlocks {
		f.now = 0
	}
	f.sunk.part = len(eol) == 0
	f.pieces = append(f.pieces[:0], f.sunk.pieces...)
	clear(f.sunk.pieces)
	f.sunk.pieces, f.sunk.size = f.sunk.pieces[:0], 0
	f.linePieces(eol)
	if f.sunk.text = f.sunk.text[:0]; cap(f.sunk.text) > outputChunk {
		f.sunk.text = nil
	}
	f.sendLarge()
}
