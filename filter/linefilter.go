package filter

import (
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/markup"
)

type lineFilter struct {
	o Options
	splitter
	processes
	resolver
	printing

	// resolves raw backtraces; nil with Dialects.None or without a Symbolizer
	tracer         *tracer
	line           int64       // number of the current line, from 1
	current        currentLine // set while a line is filtered
	open           *moduleLine // the module line that is collecting its maps; nil if there is none
	dumped         bool        // Options.DumpFile has returned false
	footnotes      []footnote  // footnotes of the current line
	footnotePrefix []byte      // printed before each footnote
	dictLookups    int         // values in the hexdicts that end in the current line
	factsAt        int         // the tracer's Facts.Changes at the last call of ProcessesChanged
}

func (f *lineFilter) lineOf(b []byte) {
	f.line++
	f.dictLookups = 0
	f.printOf(f.line)
	f.current.text = b
	text, eol := lines.CutEnd(b)
	if f.o.ProcessKey != nil {
		f.enterProcess(text)
	}
	switch {
	case f.o.Dialects.Elements:
		f.unchangedLine(text, eol)
	case f.process.hex != nil:
		f.dictLine(text)
		f.linePieces(eol)
	case f.oneFrame(text):
		f.closeModule()
		f.printPieces(&f.pieces[f.firstElement], eol)
	default:
		f.tokens(text)
		f.findDict(text)
		f.linePieces(eol)
	}
	f.sendLarge()
	if cap(f.pieces) > 4096 {
		f.pieces = nil // frees the memory of a line with a million elements
	}
	f.current.text = nil
}

func (f *lineFilter) linePieces(eol []byte) {
	var contextual, presented int
	var last *piece // the last presentation element
	f.firstElement = -1
	f.steps += int64(len(f.pieces))
	for i := range f.pieces {
		p := &f.pieces[i]
		if p.Err != nil {
			f.diagnose(p.Err.Off, p.Err.Error())
		}
		if p.Kind != markup.Elem {
			continue
		}
		f.elements++
		if f.firstElement < 0 {
			f.firstElement = i
		}
		switch p.Tag {
		case markup.TagReset, markup.TagModule, markup.TagMMap:
			contextual++
		case markup.TagPC, markup.TagBT, markup.TagData, markup.TagSymbol, markup.TagHexDict:
			presented++
			last = p
		}
	}
	if contextual > 0 {
		f.contextualLine(eol)
		return
	}
	f.closeModule()
	if presented != 1 || last.Tag != markup.TagBT {
		last = nil
	}
	f.printPieces(last, eol)
}

// printPieces prints the current line, which has no contextual elements. frame is its backtrace
// element if that is the only presentation element, nil otherwise.
func (f *lineFilter) printPieces(frame *piece, eol []byte) {
	if frame != nil && f.standsAlone(frame) {
		f.layOutInPlace()
		f.backtraceLine(frame, eol)
		return
	}
	for i := range f.pieces {
		if p := &f.pieces[i]; p.Kind == markup.Elem {
			if p.Tag == markup.TagBT && i > 0 && f.pieces[i-1].Tag == markup.TagBT && f.pieces[i-1].Kind == markup.Elem {
				f.layout.Mark(" ") // separates two frames without text between them
			}
			f.presentation(p)
			f.printLarge()
		} else {
			f.layout.LogToken(&p.Token)
		}
	}
	f.endLine(eol)
}
