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
