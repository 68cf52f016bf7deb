package filter

import (
	"slices"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/markup"
)

// presentation lays out a presentation element within a line. backtraceLine lays out a bt element
// that is alone in its line.
func (f *lineFilter) presentation(p *piece) {
	switch p.Tag {
	case markup.TagBT, markup.TagPC, markup.TagData, markup.TagSymbol:
		f.layout.BreakSequence()
	}
	start := len(f.layout.Buf)
	switch p.Tag {
	case markup.TagBT:
		if e, ok := p.bt(); ok {
			a := f.codeAnswer(e.addr, lookupOfFrame(e))
			f.countCode(OriginBT, e.addr, e.kind, a)
			f.frameInSentence(e, a)
			f.message(p.Fields)
			f.layout.Display.TextBegins(len(f.layout.Buf))
			f.recordAnswer(start, p.Tag, e.number, e.addr, p.Fields, a)
			return
		}
	case markup.TagPC:
		if e, err := p.pc(); err == nil {
			a := f.codeAnswer(e.Addr, lookupOf(e.Kind))
			f.countCode(OriginPC, e.Addr, e.Kind, a)
			if a.mod == nil {
				f.bracketedElement(p)
			} else {
				f.codeLocation(a)
			}
			f.layout.Display.TextBegins(len(f.layout.Buf))
			f.recordAnswer(start, p.Tag, 0, e.Addr, nil, a)
			return
		}
	case markup.TagData:
		if e, err := p.data(); err == nil {
			a := f.dataAnswer(e.Addr)
			f.countAnswer(OriginData, a)
			f.layout.Display.Breakable(len(f.layout.Buf))
			f.variable(a, p)
			f.layout.Display.TextBegins(len(f.layout.Buf))
			f.recordAnswer(start, p.Tag, 0, e.Addr, nil, a)
			return
		}
	case markup.TagSymbol:
		if e, err := p.symbol(); err == nil {
			shown := f.demangle(e.Name)
			f.layout.Display.Breakable(len(f.layout.Buf))
			f.layout.Function(shown)
			f.layout.Display.TextBegins(len(f.layout.Buf))
			f.recordElement(start, Element{Tag: p.Tag, Name: e.Name, Shown: shown})
			return
		}
	case markup.TagHexDict:
		if e, err := p.dict(); err == nil {
			d := openDict{body: []byte(e.Body)}
			// only the first element can have a prefix: searching before each element would take
			// quadratic time
			if f.firstElement >= 0 && p == &f.pieces[f.firstElement] {
				d.prefix = f.prefixOf(p)
			}
			f.collectFootnotes(&d)
			f.rawElement(p)
			f.records.endLastRecord(len(f.layout.Buf))
			return
		}
	case markup.TagDumpFile:
		if e, err := p.dump(); err == nil {
			f.dump(e)
			f.rawElement(p)
			f.recordElement(start, Element{Tag: p.Tag, Name: e.Name, Type: e.Type})
			return
		}
	}
	f.rawElement(p)
}

func (f *lineFilter) demangle(name string) string {
	if f.o.Symbolizer != nil {
		name = f.o.Symbolizer.Demangle(name)
	}
	if f.o.Display.ShortNames {
		name = layout.ShortName(name)
	}
	return escape.Clean(name)
}

// backtraceLine prints a line whose only presentation element is bt. It prints one line for each
// call at the address, each with the text around the element.
func (f *lineFilter) backtraceLine(bt *piece, eol []byte) {
	at := 0
	for &f.pieces[at] != bt {
		at++
	}
	after := at + 1
	f.rawPieces(f.pieces[:at])
	f.layout.Display.FrameBegins(len(f.layout.Buf), frameIndent)
	e, ok := bt.bt()
	if !ok {
		f.rawElement(bt)
		f.rawPieces(f.pieces[after:])
		f.endLine(eol)
		return
	}
	a := f.codeAnswer(e.addr, lookupOfFrame(e))
	f.countCode(OriginBT, e.addr, e.kind, a)
	f.recordAnswer(len(f.layout.Buf), bt.Tag, e.number, e.addr, bt.Fields, a)
	if !a.hasText || len(a.text.cuts) == 1 && !f.printsSources {
		f.records.addFrame(len(f.layout.Buf), 0)
		f.frame(e, a, 0)
		f.message(bt.Fields)
		f.records.endLastRecord(len(f.layout.Buf))
		if f.layout.Display != nil {
			markFrame(f, e, a, 0, endsAt(f, after, bt.Fields))
		}
		f.layout.Display.TextBegins(len(f.layout.Buf))
		f.rawPieces(f.pieces[after:])
		f.endLine(eol)
		return
	}
	f.inlinedLines(bt, a, after, eol)
}

// inlinedLines prints a frame with inlined calls. The text before the element is already laid out;
// f.pieces[after:] follow the element. Text of more than maxRepeat bytes before or after the frame
// is not repeated.
func (f *lineFilter) inlinedLines(bt *piece, a *answer, after int, eol []byte) {
	var before []byte
	if len(f.layout.Buf) <= maxRepeat {
		before = append(f.before[:0], f.layout.Buf...)
		f.before = before
	}
	afterBytes := len(bt.Fields)
	for i := after; i < len(f.pieces); i++ {
		afterBytes += len(f.pieces[i].Raw)
	}
	between := eol
	if len(between) == 0 {
		between = newline
	}
	state, cur := f.layout.State, f.layout.Current
	begin := func() {
		f.layout.Buf = append(f.layout.Buf, before...)
		f.layout.State = state
		if len(before) > 0 {
			f.layout.Current = cur
		}
	}
	last := len(a.text.cuts) - 1
	for i := range a.text.cuts {
		if i > 0 {
			begin()
			f.layout.Display.FrameBegins(len(f.layout.Buf), frameIndent)
		}
		f.records.addFrame(len(f.layout.Buf), i)
		f.frame(&bt.frame, a, i)
		if f.layout.Display != nil {
			markFrame(f, &bt.frame, a, i, endsAt(f, after, bt.Fields))
		}
		if i == last {
			f.message(bt.Fields)
			f.records.endLastRecord(len(f.layout.Buf))
			f.layout.Display.TextBegins(len(f.layout.Buf))
			f.rawPieces(f.pieces[after:])
			if f.printsSources {
				f.sourceBelow(a, i, between, begin, func() {})
			}
			f.endLine(eol)
			return
		}
		if afterBytes <= maxRepeat {
			f.message(bt.Fields)
			f.layout.Display.TextBegins(len(f.layout.Buf))
			f.rawPieces(f.pieces[after:])
		}
		if f.printsSources {
			f.sourceBelow(a, i, between, begin, func() {})
		}
		f.layout.NextLine(between)
		f.printLarge()
	}
}

// endsAt reports whether only blanks follow the frame of a backtrace element.
func endsAt(f *lineFilter, after int, message []byte) bool {
	return len(message) == 0 && !slices.ContainsFunc(f.pieces[after:], func(p piece) bool {
		return p.Kind == markup.Elem || !f.layout.Blank(&p.Token)
	})
}

func (f *lineFilter) endLine(eol []byte) {
	f.endText(eol)
	f.print(eol, false)
}

func (f *lineFilter) endText(eol []byte) {
	if len(f.footnotes) > 0 {
		f.printFootnotes(eol)
	}
	f.layout.EndColor()
	if f.layout.Display != nil {
		f.layout.Buf = f.layout.Display.EndLine(f.layout.Buf)
	}
}
