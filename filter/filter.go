package filter

import (
	"bytes"
	"errors"
	"io"

	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

// A Filter prints the log that is written to it, symbolized. See the package
// documentation for what comes out and who may use it.
//
// It cuts the stream into lines, and passes those without markup on. A lineFilter does the others:
// its splitter makes pieces of a line, its resolver answers their addresses from what the process has
// said, its layout makes text of pieces and answers, and its printer makes a line of the output.
type Filter struct {
	lineFilter
	cut  lines.Cutter
	sunk sunkLine // the unfinished line of the Sink methods
}

// A lineFilter filters lines, one at a time.
type lineFilter struct {
	o Options
	splitter
	processes
	resolver
	printing

	line           int64       // number of the current line, from 1
	current        currentLine // while it is filtered
	open           *moduleLine // the module line that still collects its maps
	dumped         bool        // Options.DumpFile wants no more
	footnotes      []footnote  // footnotes of the current line
	footnotePrefix []byte      // printed before each
	looked         int         // values of hexdicts that the current line has ended
}

// New returns a Filter that prints to w. It writes whole lines, in large
// blocks, and never closes w. With [Options.Emit] w is not used.
func New(w io.Writer, o Options) *Filter {
	f := new(Filter)
	f.o = o
	f.cut.Max = maxLine
	f.output = output{w: w, emit: o.Emit}
	f.printer, f.part = textPrinter{}, outputChunk
	f.splitter.color = o.Color
	f.layout = layout{color: o.Color, terminal: o.Terminal}
	if o.Output == JSON {
		f.printer, f.part, f.noted = &jsonPrinter{o.Members}, maxObject, new(noted)
		f.between = newline
	}
	cache := o.Cache
	if cache == nil {
		cache = NewCache(0)
	}
	f.resolver.init(&f.o, cache, f.noted != nil)
	f.setProcess(new(process))
	return f
}

// Write filters p. When it returns, every complete line in p is at the
// writer, but for a module line that is still collecting its maps: it goes
// out before the next line that is not part of it, or at Close. The error is
// the writer's; what a log holds never is one.
func (f *Filter) Write(p []byte) (int, error) {
	f.now = 0
	f.patience.Block()
	for rest := p; len(rest) > 0; {
		var b []byte
		var kind lines.Kind
		b, kind, rest = f.cut.Block(rest)
		switch kind {
		case lines.Whole:
			f.wholeLines(b)
		case lines.Head:
			b = b[f.flushed.text:]
			f.flushed = flushed{}
			f.plain(b, 0)
		case lines.Rest:
			f.plain(b, bytes.Count(b[len(b)-1:], newline))
		}
	}
	f.send()
	if f.err != nil {
		return 0, f.err
	}
	return len(p), nil
}

// wholeLines filters b, which ends with a line end. If Flush has printed the beginning of its first
// line, there is no other.
func (f *Filter) wholeLines(b []byte) {
	if f.flushed.text > 0 {
		f.lastLine(b)
		return
	}
	f.lookAhead(b)
	f.lines(b)
	f.endAhead()
}

// lastLine filters the line of which Flush may have printed the beginning.
func (f *Filter) lastLine(b []byte) {
	f.oneLine(b)
	if f.flushed.text > 0 { // what is left out for that cannot reach the next line
		f.send()
		f.flushed = flushed{}
	}
}

// ReadFrom filters r to its end, in large blocks; its buffer belongs to it.
// It does not finish an unfinished last line: Close does.
func (f *Filter) ReadFrom(r io.Reader) (n int64, err error) {
	block := make([]byte, readBlock)
	for {
		m, err := r.Read(block)
		n += int64(m)
		if m > 0 {
			if _, werr := f.Write(block[:m]); werr != nil {
				return n, werr
			}
		}
		if errors.Is(err, io.EOF) {
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}

// Unfinished reports whether the last line so far lacks its end and was not
// passed on: whether Flush may have something to do.
func (f *Filter) Unfinished() bool {
	tail, _ := f.cut.Unfinished()
	return len(tail) > f.flushed.text
}

// Flush passes on an unfinished last line that cannot become an element, such
// as a prompt; its rest follows when it comes. A line that already holds an
// element, or that may yet belong to the module line that is collecting its
// maps, is kept until it is finished. The command calls it after 100 ms of
// silence.
func (f *Filter) Flush() error {
	tail, _ := f.cut.Unfinished()
	if len(tail) == f.flushed.text || f.err != nil || f.noted != nil || f.openDicts > 0 || f.terminal && cutRune(tail) > 0 {
		return f.err
	}
	f.tokens(tail)
	for i := range f.pieces {
		if f.pieces[i].Kind == markup.Elem {
			return nil
		}
	}
	if tail[len(tail)-1] == '\r' { // half a line end, perhaps
		return nil
	}
	if markup.MayBecomeElement(tail) || f.open != nil && f.open.mayContinue(tail) {
		return nil
	}
	f.closeModule()
	f.send()
	f.printOf(f.line + 1)
	before := f.state
	for i := range f.pieces {
		f.logToken(&f.pieces[i].Token)
	}
	f.state, f.cur = before, sgr.State{} // the line is rendered again, from its start, when it is finished
	f.ready = append(f.ready, f.buf[min(f.flushed.laid, len(f.buf)):]...)
	f.flushed = flushed{len(tail), len(f.buf)}
	f.buf = f.buf[:0]
	f.send()
	return f.err
}

// Line returns the number of lines so far: that of the last one, counted from 1.
func (f *Filter) Line() int64 { return f.line }

// Held returns the number of the module line that is still collecting its maps, or 0. Nothing is
// printed of lines that merge into it; its own output comes before that of any other later line, in
// one piece.
func (f *Filter) Held() int64 {
	if f.open == nil {
		return 0
	}
	return f.open.line
}

// InDict reports whether a process is in the middle of a hexdict: then the next line may be part of
// it, whatever it holds.
func (f *Filter) InDict() bool { return f.openDicts > 0 }

// Close finishes the last line, as one without a line end, and the module
// line. It returns the writer's first error.
func (f *Filter) Close() error {
	f.endSunk(nil)
	if tail, _ := f.cut.Finish(); len(tail) > 0 {
		f.lastLine(tail)
	}
	f.closeModule()
	f.send()
	return f.err
}

// block filters b, which ends with a line end. Lines without a mark ("{{{",
// or ESC where colour is followed) are never looked at one by one.
func (f *Filter) block(b []byte) {
	open, esc := -1, len(b)
	lines := 0 // line ends from at to open
	told := 0  // the place from which the ahead is told of another
	if f.o.Color != ColorKeep {
		esc = -1
	}
	for at := 0; at < len(b); {
		if f.ahead != nil && at >= told {
			f.ahead.at.Store(int64(at))
			told = at + aheadStep
		}
		if open < at {
			n, l := FindOpen(b[at:])
			open, lines = at+n, l
		}
		if esc < at {
			esc = nextEscape(b, at)
		}
		mark := min(open, esc)
		if f.openDicts > 0 {
			mark = at // each line may be part of it
		}
		if mark == len(b) {
			f.plain(b[at:], lines)
			return
		}
		start := at + bytes.LastIndexByte(b[at:mark], '\n') + 1
		end := mark + bytes.IndexByte(b[mark:], '\n') + 1
		if start > at {
			n := lines
			if mark != open {
				n = bytes.Count(b[at:start], newline)
			}
			f.plain(b[at:start], n)
			lines -= n
		}
		if end-start > maxLine+1 {
			f.plain(b[start:end], 1)
		} else {
			f.current.end = end
			f.lineOf(b[start:end])
		}
		lines--
		at = end
	}
}

// nextEscape returns where ESC stands in b at or behind at; len(b) when it
// does not.
func nextEscape(b []byte, at int) int {
	if i := bytes.IndexByte(b[at:], esc); i >= 0 {
		return at + i
	}
	return len(b)
}

// plain passes b, which holds so many line ends, on as it is: whole lines, or
// parts of a very long one.
func (f *Filter) plain(b []byte, lines int) {
	f.closeModule()
	first := f.line + 1
	f.printOf(first)
	f.line += int64(lines)
	if f.noted != nil || f.terminal {
		f.plainLines(b, first)
		return
	}
	if len(b) < directWrite {
		f.ready = append(f.ready, b...)
		f.sendLarge()
		return
	}
	f.send()
	f.write(b)
}

// lineOf filters one line, with its line end if it has one.
func (f *lineFilter) lineOf(b []byte) {
	f.line++
	f.looked = 0
	f.printOf(f.line)
	f.current.text = b
	text, eol := splitLine(b)
	f.enterProcess(text)
	switch {
	case f.process.hex != nil:
		f.dictLine(text)
	case !f.oneFrame(text):
		f.tokens(text)
		f.findDict(text)
	}
	f.linePieces(eol)
	f.sendLarge()
	if cap(f.pieces) > 4096 {
		f.pieces = nil // a line of a million elements must not be paid for ever after
	}
	f.current.text = nil
}

// plainLines is plain for lines that are not passed on as they are. The first is this line of the
// log.
func (f *Filter) plainLines(b []byte, first int64) {
	for line := range bytes.Lines(b) {
		f.printOf(first)
		first++
		text, eol := splitLine(line)
		if f.terminal {
			f.buf = f.visible.append(f.buf, text, len(eol) > 0)
			text = f.buf
		}
		l := &f.printed
		*l = outputLine{number: f.of, process: f.process.key, continues: true}
		for len(text) > maxObject {
			n := maxObject - cutRune(text[:maxObject])
			l.text, text = text[:n], text[n:]
			f.printLine(l)
		}
		l.text, l.eol, l.continues = text, eol, len(eol) == 0
		f.printLine(l)
		f.buf = f.buf[:0]
		f.sendLarge()
	}
}

// diagnose reports what was wrong with the element at byte off of the line.
func (f *lineFilter) diagnose(off int, message string) {
	if f.o.Diagnose != nil {
		f.o.Diagnose(Diagnostic{Line: f.line, Byte: off + 1, Message: message})
	}
}
