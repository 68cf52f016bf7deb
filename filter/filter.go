package filter

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
)

// A Filter prints the log that is written to it, symbolized. See the package
// documentation for what comes out and who may use it.
type Filter struct {
	w     io.Writer
	o     Options
	cache *Cache
	open  *moduleLine // the module line that still collects its maps

	process   *process            // whose line is at work
	processes map[string]*process // all, when the stream has several
	turn      uint64              // lines that looked for their process
	began     int                 // weight of the process at work when it came to work
	grown     int                 // weight that all have gained since evict looked at them
	openDicts int                 // processes in the middle of a hexdict
	dumped    bool                // Options.DumpFile wants no more

	notes      []note // footnotes of the current line
	notePrefix []byte // printed before each
	looked     int    // values of hexdicts that the current line has ended
	first      int    // index in pieces of the first element of the current line; -1 without one

	json *jsonOut // nil: the output is text

	out   []byte // printed, not yet at w
	of    int64  // line of the log that is being printed
	skip  int    // bytes at the head of out that Flush has passed on already
	sends int    // times that out was written
	err   error  // the writer's first; nothing is written behind it

	// The unfinished last line.
	tail     []byte  // its bytes so far
	long     bool    // it is longer than maxLine: what comes goes out uninterpreted
	passed   int     // bytes of tail that Flush has passed on
	sunk     []piece // the unfinished line of the Sink methods
	sunkText []byte  // of its pieces
	sunkSize int
	sunkPart bool // a part of the line was laid out before: it is too long

	// steps counts the work on lines with marks: bytes scanned, moved and kept, pieces looked at.
	// Nothing depends on it: tests hold it against the length of the lines. A plain line takes
	// none.
	steps int64

	line    int64 // 1-based number of the line at work
	current current
	pieces  []piece
	scan    markup.Scanner
	resolver
	painter
	visible visible
}

// New returns a Filter that prints to w. It writes whole lines, in large
// blocks, and never closes w. With [Options.Emit] w is not used.
func New(w io.Writer, o Options) *Filter {
	f := &Filter{w: w, o: o, cache: o.Cache, process: new(process)}
	if o.Output == JSON {
		f.json = new(jsonOut)
	}
	if f.cache == nil {
		f.cache = NewCache(0)
	}
	f.paint = o.Color == ColorAlways
	f.resolver.init(&f.o, f.cache)
	return f
}

// Write filters p. When it returns, every complete line in p is at the
// writer, but for a module line that is still collecting its maps: it goes
// out before the next line that is not part of it, or at Close. The error is
// the writer's; what a log holds never is one.
func (f *Filter) Write(p []byte) (int, error) {
	n := len(p)
	f.now = 0
	f.patience.Block()
	if len(f.tail) > 0 || f.long {
		p = f.finishLine(p)
	}
	if i := bytes.LastIndexByte(p, '\n'); i >= 0 {
		f.lookAhead(p[:i+1])
		f.lines(p[:i+1])
		f.endAhead()
		p = p[i+1:]
	}
	if len(p) > maxLine {
		f.plain(p, 0)
		f.long = true
	} else if len(p) > 0 {
		f.tail = append(f.tail, p...)
	}
	f.send()
	if f.err != nil {
		return 0, f.err
	}
	return n, nil
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
func (f *Filter) Unfinished() bool { return len(f.tail) > f.passed }

// Flush passes on an unfinished last line that cannot become an element, such
// as a prompt; its rest follows when it comes. A line that already holds an
// element, or that may yet belong to the module line that is collecting its
// maps, is kept until it is finished. The command calls it after 100 ms of
// silence.
func (f *Filter) Flush() error {
	if !f.Unfinished() || f.err != nil || f.json != nil || f.openDicts > 0 || f.o.Terminal && cutRune(f.tail) > 0 {
		return f.err
	}
	f.tokens(f.tail)
	for i := range f.pieces {
		if f.pieces[i].Kind == markup.Elem {
			return nil
		}
	}
	if f.tail[len(f.tail)-1] == '\r' { // half a line end, perhaps
		return nil
	}
	if markup.MayBecomeElement(f.tail) || f.open != nil && f.open.mayContinue(f.tail) {
		return nil
	}
	f.closeModule()
	f.send()
	f.printOf(f.line + 1)
	before := f.state
	for i := range f.pieces {
		f.text(&f.pieces[i])
	}
	f.state, f.cur = before, sgr.State{} // the line is rendered again, from its start, when it is finished
	n := len(f.out)
	f.send()
	f.passed, f.skip = len(f.tail), n
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
	if len(f.tail) > 0 {
		f.oneLine(f.tail)
		f.endPassed()
		f.tail = nil
	}
	f.long = false
	f.closeModule()
	f.send()
	return f.err
}

// finishLine gives the head of p to the unfinished line and returns the rest.
func (f *Filter) finishLine(p []byte) (rest []byte) {
	head, ends := p, 0
	i := bytes.IndexByte(p, '\n')
	if i >= 0 {
		head, ends = p[:i+1], 1
	}
	switch {
	case f.long:
		f.plain(head, ends)
		f.long = i < 0
	case len(f.tail)+len(head) > maxLine+1 || i < 0 && len(f.tail)+len(head) > maxLine:
		f.skip = 0
		f.plain(f.tail[f.passed:], 0)
		f.plain(head, ends)
		f.tail, f.passed, f.long = nil, 0, i < 0
	default:
		f.tail = append(f.tail, head...)
		if i >= 0 {
			f.oneLine(f.tail)
			f.endPassed()
			f.tail = f.tail[:0]
		}
	}
	return p[len(head):]
}

// endPassed ends a line of which Flush may have passed on the beginning: what
// was left out for that cannot reach the next line.
func (f *Filter) endPassed() {
	if f.passed > 0 {
		f.send()
		f.skip, f.passed = 0, 0
	}
}

// block filters b, which ends with a line end. Lines without a mark ("{{{",
// or ESC where colour is followed) are never looked at one by one.
func (f *Filter) block(b []byte) {
	open, esc := -1, len(b)
	lines := 0 // line ends from at to open
	if f.o.Color != ColorKeep {
		esc = -1
	}
	for at := 0; at < len(b); {
		if f.ahead != nil {
			f.ahead.at.Store(int64(at))
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
	if f.json != nil || f.o.Terminal {
		f.plainLines(b, first)
		return
	}
	if len(b) < directWrite {
		f.out = append(f.out, b...)
		f.sendLarge()
		return
	}
	f.send()
	f.write(b)
}

// lineOf filters one line, with its line end if it has one.
func (f *Filter) lineOf(b []byte) {
	f.line++
	f.looked = 0
	f.printOf(f.line)
	f.current.text, f.current.printed, f.current.sends = b, len(f.out), f.sends
	text, eol := splitLine(b)
	f.enter(text)
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

// tokens splits text into f.pieces.
func (f *Filter) tokens(text []byte) {
	f.pieces = f.pieces[:0]
	f.steps += int64(len(text))
	f.scan.Reset(text)
	for {
		t, ok := f.scan.Next()
		if !ok {
			return
		}
		if len(f.pieces) == maxPieces {
			f.pieces = append(f.pieces, piece{Token: markup.Token{Raw: text[t.Off:], Off: t.Off}})
			return
		}
		if t.Tag == markup.TagSymbol && t.Kind == markup.Elem && literal(t.Fields) {
			t = markup.Token{Raw: t.Fields, Off: t.Off}
		}
		f.pieces = append(f.pieces, piece{Token: t})
	}
}

// plainLines is plain for lines that are not passed on as they are. The first is this line of the
// log.
func (f *Filter) plainLines(b []byte, first int64) {
	for line := range bytes.Lines(b) {
		f.printOf(first)
		first++
		text, eol := splitLine(line)
		if f.o.Terminal {
			f.out = f.visible.append(f.out, text, len(eol) > 0)
			text = nil
		}
		if f.json == nil {
			f.out = append(f.out, eol...)
			f.sendLarge()
			continue
		}
		for len(text) > maxObject {
			n := maxObject - cutRune(text[:maxObject])
			f.out = append(f.out, text[:n]...)
			f.emit(true)
			text = text[n:]
		}
		f.out = append(f.out, text...)
		f.emit(len(eol) == 0)
		f.sendLarge()
	}
}

// oneFrame does what tokens does for a line with one backtrace element and no
// other mark, which most lines with markup are, in a third of the time.
// Otherwise it reports false and does nothing.
func (f *Filter) oneFrame(text []byte) bool {
	if f.o.Color != ColorKeep {
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
	f.pieces = f.pieces[:0]
	if open > 0 {
		f.addPiece().Raw = text[:open]
	}
	p := f.addPiece()
	p.Kind = markup.Elem
	p.Tag = markup.TagBT
	p.Raw = text[open : open+n]
	p.Off = open
	p.frame = frame
	p.parsed = true
	if len(rest) > 0 {
		p := f.addPiece()
		p.Raw = rest
		p.Off = open + n
	}
	return true
}

// addPiece adds an empty piece, which is filled in place: copying pieces shows
// in the time of a hot frame.
func (f *Filter) addPiece() *piece {
	n := len(f.pieces)
	if n == cap(f.pieces) {
		f.pieces = slices.Grow(f.pieces, 8)
	}
	f.pieces = f.pieces[:n+1]
	p := &f.pieces[n]
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

// sendLarge writes what is printed when it is much, and reports whether
// nothing of the line at work is left.
func (f *Filter) sendLarge() bool {
	switch {
	case f.json == nil && len(f.out) >= outputChunk:
		f.send()
	case f.json != nil && (len(f.out) >= maxObject || f.json.size >= maxElements):
		f.emit(true)
	case f.json != nil && len(f.json.lines) >= outputChunk:
		f.send()
		return false
	default:
		return false
	}
	return true
}

// send writes what is printed, but for what Flush has passed on already.
func (f *Filter) send() {
	f.sends++
	if f.json != nil {
		f.write(f.json.lines)
		f.json.lines = f.json.lines[:0]
		return
	}
	if n := min(f.skip, len(f.out)); n > 0 {
		f.skip -= n
		f.write(f.out[n:])
	} else {
		f.write(f.out)
	}
	f.out = f.out[:0]
	if cap(f.out) > 4*outputChunk {
		f.out = nil
	}
}

// printOf notes of which line of the log the output that follows is made. With Options.Emit it sends
// what was made of another line.
func (f *Filter) printOf(line int64) {
	if f.of == line {
		return
	}
	if f.o.Emit != nil {
		f.send()
	}
	f.of = line
}

func (f *Filter) write(b []byte) {
	if len(b) == 0 || f.err != nil {
		return
	}
	if f.o.Emit != nil {
		f.err = f.o.Emit(f.of, b)
		return
	}
	if n, err := f.w.Write(b); err != nil {
		f.err = err
	} else if n != len(b) {
		f.err = io.ErrShortWrite
	}
}

// diagnose reports what was wrong with the element at byte off of the line.
func (f *Filter) diagnose(off int, message string) {
	if f.o.Diagnose != nil {
		f.o.Diagnose(Diagnostic{Line: f.line, Byte: off + 1, Message: message})
	}
}
