package filter

import (
	"errors"
	"io"

	"github.com/symfilter/symfilter/internal/access"
	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/internal/lines"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

// A Filter prints the log that is written to it, symbolized. The package documentation describes
// the output. One goroutine at a time may use a Filter.
//
// A Filter cuts the stream into lines, and prints lines without a mark unchanged. Its lineFilter
// filters lines with a mark. The splitter cuts a line into pieces, and the resolver finds answers
// for their addresses. The layout makes text from both, and the printer makes a line of output. The
// tracer filters raw backtraces.
type Filter struct {
	lineFilter
	cut  lines.Cutter
	sunk sunkLine // the unfinished line of the Sink methods
	bare bool     // the options allow bareLines

	inBlocks bool // the clock is read once per block of the Sink methods; see inner.EndBlock

	longCut []byte     // the unfinished colour sequence or character at the end of the last longPart
	whole   LogPrinter // the printer, if it is a LogPrinter; otherwise nil
}

// New returns a Filter that prints to w in large blocks, and never closes w. If [Options.Emit] is
// set, w is not used.
func New(w io.Writer, o Options) *Filter {
	f := new(Filter)
	f.o = o
	f.cut.Max = maxLine
	f.output = output{w: w, emit: o.Emit}
	if p, ok := o.Printer.(LogPrinter); ok {
		f.whole = p
		p.Begin(&f.o)
		o = f.o
	}
	f.printer, f.part = o.Printer, outputChunk
	f.splitter.color = o.Color
	f.layout = layout.Line{Colors: layout.Colors(o.Color), Terminal: o.Terminal, Display: newDisplay(&o)}

	switch {
	case f.printer != nil:
	case o.Output == JSON:
		f.printer = &jsonPrinter{o.Members}
	default:
		f.printer = textPrinter{}
	}
	if f.printer != (textPrinter{}) {
		f.part, f.records, f.layout.Between = maxObject, new(elementRecords), newline
	}
	f.onAnswer, f.own = o.Resolved, o.Display.Own
	f.limits, f.evicted = o.Limits.orDefault(), o.Evicted
	f.needsSources = f.records != nil || f.onAnswer != nil
	f.sourceOf, f.printsSources = o.Paths.Source, o.Paths.Source != nil && o.Printer == nil
	f.layout.Links = o.Paths.Hyperlinks && o.Paths.Link != nil
	f.quick = o.Color != ColorAlways && f.layout.Display == nil && !f.layout.Links
	f.bare = f.quick && !f.needsSources && !f.printsSources && o.Emit == nil && o.ProcessKey == nil && !o.Dialects.Elements &&
		(o.Color == ColorKeep || o.Color == ColorForPrinter)
	cache := o.Cache
	if cache == nil {
		cache = NewCache(0)
	}
	f.resolver.init(&f.o, cache, f.needsSources || o.Paths.Source != nil || o.Paths.Link != nil)
	f.setProcess(new(process))
	if f.tracer = newTracer(&f.lineFilter); f.mayRepeat() {
		f.tracer.repeats = newRepeats()
	}
	return f
}

// Write filters p. When it returns, every complete line in p has been written, except held lines.
// These are a module line that is collecting its maps, the lines of a raw backtrace, and with
// Display.Fold a run of system frames. A module line is written before the next line that is not
// part of it. Close writes all held lines. Flush writes a module line only before an unfinished
// line that cannot be part of it, and a raw backtrace only without Dialects.Whole. Write returns
// only errors of the writer or of Options.Emit: a log cannot cause an error.
func (f *Filter) Write(p []byte) (int, error) {
	f.now = 0
	f.patience.Block()
	if f.tracer.late() {
		f.release()
	}
	for rest := p; len(rest) > 0; {
		var b []byte
		var kind lines.Kind
		b, kind, rest = f.cut.Block(rest)
		switch kind {
		case lines.Whole:
			f.wholeLines(b)
		case lines.Head:
			f.release()
			b = b[f.flushed.text:]
			f.flushed = flushed{}
			f.longPart(b)
		case lines.Rest:
			f.longPart(b)
		}
	}
	if f.o.Display.AtOnce && f.layout.Display.Held() > 0 {
		f.ready = f.layout.Display.Release(f.ready)
	}
	f.send()
	if f.err != nil {
		return 0, f.err
	}
	return len(p), nil
}

// wholeLines filters b, which ends with a line end. If Flush has printed the start of a line, b is
// only that line.
func (f *Filter) wholeLines(b []byte) {
	if f.flushed.text > 0 {
		f.lastLine(b)
		return
	}
	f.flushed = flushed{}
	f.lookAhead(b)
	f.guardedBlock(b)
	f.endBlock()
}

// lastLine filters one line: the last line of the log, or a line whose beginning Flush has printed.
func (f *Filter) lastLine(b []byte) {
	if f.flushed.text > 0 {
		f.release()
	}
	f.guardedLine(b)
	if f.flushed.text > 0 { // before the reset of flushed, which applies to this line only
		f.release()
		f.send()
	}
	f.flushed = flushed{}
}

// ReadFrom filters r to its end, in blocks of 256 KiB. It leaves an unfinished last line for Close.
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

// Flush prints held system frames and, unless Dialects.Whole is set, the held lines of a raw
// backtrace. If the output is text, it also prints an unfinished last line, such as a prompt; the
// rest of the line follows when it is written. An unfinished line stays held
//
//   - while a hexdict is open
//   - if it has an element, or may end in part of one
//   - if it may merge into the open module line
//
// The command calls Flush after 100 ms of silence.
func (f *Filter) Flush() error {
	f.now = 0
	if f.tracer.isBuffering() && !f.o.Dialects.Whole {
		f.release()
		f.send()
	}
	if f.layout.Display.Held() > 0 {
		f.ready = f.layout.Display.Release(f.ready)
		f.send()
	}
	tail, _ := f.cut.Unfinished()
	if f.tracer.isBuffering() || len(tail) == f.flushed.text || f.err != nil || f.records != nil || f.openDicts > 0 || f.layout.Terminal && escape.CutRune(tail) > 0 {
		return f.err
	}
	if f.holdsElement(tail) || f.open != nil && f.open.mayContinue(tail) {
		return nil
	}
	done := &f.flushed
	start := 0
	if done.resumes {
		start = done.text
	}
	f.tokens(tail[start:])
	// after maxPieces pieces, the rest of the line is plain text: hold it until the line ends
	if done.pieces += len(f.pieces); done.pieces >= maxPieces {
		done.held = true
		return nil
	}
	f.closeModule()
	f.ready = f.layout.Display.EndTrace(f.ready)
	f.send()
	f.printOf(f.line + 1)
	before := f.layout.State
	f.layout.State, f.layout.Current = done.state, done.cur
	for i := range f.pieces {
		f.layout.LogToken(&f.pieces[i].Token)
	}
	done.state, done.cur = f.layout.State, f.layout.Current
	// the line is laid out again from its start when it ends: restore the state at its start
	f.layout.State, f.layout.Current = before, sgr.State{}
	if done.resumes {
		f.ready = append(f.ready, f.layout.Buf...)
		done.laid += len(f.layout.Buf)
	} else { // after a restart, the start is laid out once more
		f.ready = append(f.ready, f.layout.Buf[min(done.laid, len(f.layout.Buf)):]...)
		done.laid = len(f.layout.Buf)
	}
	done.text, done.resumes = len(tail), true
	f.layout.Buf = f.layout.Buf[:0]
	f.send()
	return f.err
}

// holdsElement reports whether the unfinished line tail has an element, or ends in bytes that may
// begin an element or a line end. Each call rereads about longestElement bytes that earlier calls
// have checked.
func (f *Filter) holdsElement(tail []byte) bool {
	if f.flushed.held {
		return true
	}
	from := max(0, f.flushed.checked-longestElement)
	if f.flushed.resumes {
		from = max(from, f.flushed.text)
	}
	for from > 0 && tail[from-1] == '{' {
		from--
	}
	f.tokens(tail[from:])
	for i := range f.pieces {
		if f.pieces[i].Kind == markup.Elem {
			f.flushed.held = true
			return true
		}
	}
	f.flushed.checked = len(tail)
	return tail[len(tail)-1] == '\r' || access.MayBecomeElement(tail[from:])
}

// Close prints all held lines: an unfinished last line, a raw backtrace, a run of system frames,
// and the open module line. It returns the first error of the writer.
func (f *Filter) Close() error {
	f.now = 0
	f.endSunk(nil)
	tail, long := f.cut.Finish()
	if len(tail) > 0 {
		f.lastLine(tail)
	}
	f.release()
	f.tracer.close()
	if long {
		f.endLong()
	}
	f.closeModule()
	f.ready = f.layout.Display.EndTrace(f.ready)
	if f.whole != nil {
		f.ready = f.whole.AppendEnd(f.ready)
	}
	f.send()
	return f.err
}
