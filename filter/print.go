package filter

import (
	"github.com/symfilter/symfilter/markup"
)

// A printer makes the output of lines that are laid out. Text and JSON are printed so.
type printer interface {
	// appendLine appends a line of the log, or a part of it.
	appendLine(dst []byte, l *outputLine) []byte
	// element returns what appendLine needs of an element; nil if nothing.
	element(e *element) []byte
}

// An outputLine is one line of the log that is laid out, or a part of one that is too long.
type outputLine struct {
	number    int64
	process   string // key of its process
	text      []byte // without eol
	eol       []byte
	records   []record // of its elements, in order
	continues bool     // the line has another part
}

// An element is what was found out about one element of a line. It is in the text of the line
// already.
type element struct {
	tag    markup.Tag
	frame  uint64 // number of a backtrace's
	addr   uint64
	answer *answer     // of an element with an address; valid until the next
	names  [2]string   // of a symbol: as logged, demangled; of a dump file: type, name
	values []dictValue // of a hexdict
	module *moduleLine // of a module, or of maps that were added to one
}

// A dictValue is a value of a hexdict.
type dictValue struct {
	key    string
	value  uint64
	known  bool // it lies in a module
	answer answer
}

// A record is what a printer needs of one element.
type record struct {
	made   []byte
	module *moduleLine // a module or its maps: made when all maps are known
}

// A textPrinter prints the log, with answers in place of elements.
type textPrinter struct{}

func (textPrinter) appendLine(dst []byte, l *outputLine) []byte {
	return append(append(dst, l.text...), l.eol...)
}

func (textPrinter) element(*element) []byte { return nil }

// printing makes output of the current line.
type printing struct {
	layout
	printer    printer
	noted      *noted // what the printer needs of the line's elements; nil: nothing
	part       int    // bytes of text that are printed at once
	flushed    flushed
	processKey string // of the line's process
	printed    outputLine
	output
}

// flushed is what Flush has printed of the unfinished line. That is laid out from its beginning each
// time, because its text may be repeated, or belong to a module line.
type flushed struct {
	text int // bytes of the line
	laid int // bytes of what they were laid out as; less once they are left out of the finished line
}

// note keeps what the printer needs of an element of the current line.
func (p *printing) note(e element) {
	if p.noted != nil {
		p.noted.add(p.printer, e)
	}
}

// noted are the records of the current line.
type noted struct {
	records []record
	size    int     // bytes, about
	element element // the last one
}

func (n *noted) add(p printer, e element) {
	r := record{module: e.module}
	if e.module == nil {
		n.element = e
		r.made = p.element(&n.element)
	}
	n.records = append(n.records, r)
	n.size += len(r.made)
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

// print prints what is laid out of the current line. If it continues, more of the line follows.
func (p *printing) print(eol []byte, continues bool) {
	if p.noted == nil && p.flushed.laid == 0 { // what textPrinter does, for the frames that come by the million
		p.ready = append(append(p.ready, p.buf...), eol...)
		p.buf = p.buf[:0]
		return
	}
	l := &p.printed
	l.number, l.process, l.text, l.eol, l.continues = p.of, p.processKey, p.buf, eol, continues
	if p.noted != nil {
		l.records = p.noted.records
	}
	p.printLine(l)
	p.noted.reset()
	if p.buf = p.buf[:0]; cap(p.buf) > 4*p.part {
		p.buf = nil
	}
}

// printLine prints a line, but for what Flush has passed on of it.
func (p *printing) printLine(l *outputLine) {
	if n := min(p.flushed.laid, len(l.text)); n > 0 {
		l.text = l.text[n:]
		p.flushed.laid -= n
	}
	p.ready = p.printer.appendLine(p.ready, l)
}

// printLarge prints a part of the current line if much of it is laid out.
func (p *printing) printLarge() {
	if len(p.buf) >= p.part || p.noted.full() {
		p.print(nil, true)
	}
	p.sendLarge()
}
