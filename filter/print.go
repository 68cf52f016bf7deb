package filter

import (
	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/markup"
)

// A Printer makes the output of lines that are laid out. Text and JSON are printed so, and
// [Options.Printer] takes another form. It has two methods because the answers of a line are not all
// kept until the line ends, which may hold a million elements.
//
// A Printer belongs to one Filter, which calls it from the goroutine that uses the Filter. It must not
// call the Filter. With one, every line of the log is printed by it, and an unfinished line is never
// flushed.
type Printer interface {
	// AppendElement appends what AppendLine needs of an element of the current line, and returns the
	// result. It is called in the order of the elements, for a module and its maps when the line is
	// printed. e and what it refers to are valid until AppendElement returns.
	AppendElement(dst []byte, e *Element) []byte

	// AppendLine appends the output for a line, with its end, and returns the result. l and what it
	// refers to are valid until AppendLine returns.
	AppendLine(dst []byte, l *Line) []byte
}

// A Line is one line of the log that is laid out, or a part of one that is too long: its text is
// about 1 MiB at most, and its elements have about 4 MiB.
type Line struct {
	Number  int64  // from 1; lines that were merged into a module's line have no output
	Process string // key of its process, if Options.ProcessKey is set

	// Text is the line with answers in place of elements, without its end. Inlined calls and the
	// footnotes of a hexdict are on further lines within it, each after a "\n". It has colours as
	// Options.Color asks for, and for a terminal no other control characters; else it may hold any
	// bytes of the log.
	Text []byte
	EOL  []byte // "\n", "\r\n", or nothing

	Elements  []LineElement // in the order of the log
	Continues bool          // another part of the line follows
}

// A LineElement is what a Printer has made of an element of a Line.
type LineElement struct {
	Made []byte // by AppendElement

	// Text[Start:End] is the text of the element: for a backtrace element on a line of its own, from
	// its first frame to its last. It is empty if none of Text is the element's.
	Start, End int
}

// An Element is an element of a line, with its answer.
type Element struct {
	Tag    markup.Tag
	Answer *Resolved      // of a backtrace, code or data element; nil otherwise
	Name   string         // of a symbol, or of a dump file, as logged
	Shown  string         // of a symbol: demangled
	Type   string         // of a dump file
	Values []DictValue    // of a hexdict
	Module *ElementModule // of a module, or of maps (TagMMap); nil otherwise
}

// A DictValue is a value of a hexdict.
type DictValue struct {
	Key    string
	Value  uint64
	Answer *Resolved // nil if the value is in no module
}

// An ElementModule is a module, or maps that were added to one.
type ElementModule struct {
	Number uint64 // in the log
	Name   string // as logged
	ID     buildid.ID
	Maps   []Mapping // by address
}

// A Mapping is a part of a module in memory.
type Mapping struct {
	Start, End uint64 // the first and the last address
	Offset     uint64 // module-relative address of Start
	Mode       markup.Mode
}

// A record is what a printer needs of one element.
type record struct {
	made       []byte
	start, end int         // in the text; end is negative until it is known
	module     *moduleLine // a module or its maps: made when all maps are known
}

// A textPrinter prints the log, with answers in place of elements.
type textPrinter struct{}

func (textPrinter) AppendLine(dst []byte, l *Line) []byte {
	return append(append(dst, l.Text...), l.EOL...)
}

func (textPrinter) AppendElement(dst []byte, _ *Element) []byte { return dst }

// printing makes output of the current line.
type printing struct {
	layout
	printer    Printer
	noted      *noted // what the printer needs of the line's elements; nil: nothing
	part       int    // bytes of text that are printed at once
	flushed    flushed
	processKey string // of the line's process
	printed    Line
	onAnswer   func(*Resolved) // Options.Resolved
	typed      bool            // answers are wanted with their sources: by onAnswer, or a printer of elements
	resolved   Resolved        // scratch of noteAnswer
	output
}

// flushed is what Flush has printed of the unfinished line. That is laid out from its beginning each
// time, because its text may be repeated, or belong to a module line.
type flushed struct {
	text int // bytes of the line
	laid int // bytes of what they were laid out as; less once they are left out of the finished line
}

// note keeps what the printer needs of an element of the current line, of which the text from start is
// laid out.
func (p *printing) note(start int, e Element) {
	if p.noted != nil {
		p.noted.add(p.printer, start, len(p.buf), &e)
	}
}

// noted are the records of the current line.
type noted struct {
	records []record
	size    int           // bytes, about
	element Element       // the last one
	line    []LineElement // of the line that is being printed
}

func (n *noted) add(p Printer, start, end int, e *Element) {
	n.element = *e
	r := record{made: p.AppendElement(nil, &n.element), start: start, end: end}
	n.element = Element{}
	n.records = append(n.records, r)
	n.size += len(r.made)
}

// addModule keeps the place of m, whose maps are not known yet.
func (n *noted) addModule(m *moduleLine) {
	if n != nil {
		n.records = append(n.records, record{module: m})
	}
}

// endLast notes that the text of the last element has ended.
func (n *noted) endLast(end int) {
	if n != nil && len(n.records) > 0 {
		n.records[len(n.records)-1].end = end
	}
}

// reset forgets all records.
func (n *noted) reset() {
	if n != nil {
		n.records, n.size = n.records[:0], 0
	}
}

// take returns the records, which are the caller's.
func (n *noted) take() (records []record) {
	if n != nil {
		records, n.records, n.size = n.records, nil, 0
	}
	return records
}

// grow notes that a record has become larger by so many bytes.
func (n *noted) grow(bytes int) {
	if n != nil {
		n.size += bytes
	}
}

// full reports whether the records have to be printed.
func (n *noted) full() bool { return n != nil && n.size >= maxElements }

// elements returns the elements of a line with text bytes of text, which are valid until the next
// line.
func (n *noted) elements(p Printer, records []record, text int) []LineElement {
	n.line = n.line[:0]
	for _, r := range records {
		if r.module != nil {
			r.made, r.start, r.end = p.AppendElement(nil, r.module.element()), r.module.at, r.module.end
		}
		if r.end < 0 {
			r.end = text
		}
		n.line = append(n.line, LineElement{r.made, r.start, r.end})
	}
	return n.line
}

// print prints what is laid out of the current line. If it continues, more of the line follows.
func (p *printing) print(eol []byte, continues bool) {
	if p.noted == nil && p.flushed.laid == 0 { // what textPrinter does, for the frames that come by the million
		p.ready = append(append(p.ready, p.buf...), eol...)
		p.buf = p.buf[:0]
		return
	}
	l := &p.printed
	*l = Line{Number: p.of, Process: p.processKey, Text: p.buf, EOL: eol, Continues: continues}
	if p.noted != nil {
		l.Elements = p.noted.elements(p.printer, p.noted.records, len(p.buf))
	}
	p.printLine(l)
	p.noted.reset()
	if p.buf = p.buf[:0]; cap(p.buf) > 4*p.part {
		p.buf = nil
	}
}

// printLine prints a line, but for what Flush has passed on of it.
func (p *printing) printLine(l *Line) {
	if n := min(p.flushed.laid, len(l.Text)); n > 0 {
		l.Text = l.Text[n:]
		p.flushed.laid -= n
	}
	p.ready = p.printer.AppendLine(p.ready, l)
}

// printLarge prints a part of the current line if much of it is laid out.
func (p *printing) printLarge() {
	if len(p.buf) >= p.part || p.noted.full() {
		p.print(nil, true)
	}
	p.sendLarge()
}
