package filter

import (
	"bytes"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/layout"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/sgr"
	"github.com/symfilter/symfilter/symbolize"
)

// A Printer makes the output for laid-out lines. Text and JSON have built-in Printers;
// [Options.Printer] sets another one. AppendElement gets the elements of a line one by one, because
// a line may have a million: their answers are not kept until the line ends.
//
// A Printer belongs to one Filter, which calls it from the goroutine that uses the Filter. It must
// not call the Filter. It prints every line of the log, including lines without elements. With a
// Printer, Flush does not print unfinished lines.
type Printer interface {
	// AppendElement appends an element of the current line in the Printer's form, and returns the
	// extended slice. AppendLine later receives the appended bytes. The calls are in the order of
	// the elements, except that a module or its maps follow when the line is printed. e and its
	// memory are valid until AppendElement returns.
	AppendElement(dst []byte, e *Element) []byte

	// AppendLine appends the output for a line, including its end, and returns the extended slice.
	// l and its memory are valid until AppendLine returns.
	AppendLine(dst []byte, l *Line) []byte
}

// LogPrinter is an optional interface of a Printer. Its methods take lines without elements in
// bulk, and print text after the last line of the log.
type LogPrinter interface {
	// Begin is called by New. It may change the options of the Filter.
	Begin(o *Options)

	// AppendLines is AppendLine for whole lines without elements. If ok is false, AppendLines has
	// appended nothing, and AppendLine is called for the first line.
	AppendLines(dst, lines []byte) (_ []byte, ok bool)

	// AppendEnd appends the output after the last line of the log.
	AppendEnd(dst []byte) []byte
}

// A Line is a laid-out line of the log, or a part of a line that is too long. It has at most about
// 1 MiB of text and 4 MiB of elements.
type Line struct {
	Number  int64  // from 1; lines that merged into a module line have no output
	Process string // key of the line's process, if Options.ProcessKey is set

	// Text is the line with answers in place of elements, without its end. Inlined calls and the
	// footnotes of a hexdict follow within it, each after a "\n". Options.Color determines its
	// colours. With Options.Terminal it has no other control characters except TAB; otherwise it
	// may have any bytes of the log.
	Text []byte
	EOL  []byte // "\n", "\r\n", or nothing

	Elements  []LineElement // in the order of the log
	Frames    []LineFrame   // parts of Text that are lines of a backtrace, in order
	Continues bool          // the next Line continues this one
}

// A LineFrame is a frame's line within the Text of a Line.
type LineFrame struct {
	At int // offset of the frame, or of its line, in Text
	// index of the frame in Answer.Frames of the element at At; 0 if there are no Frames; NoFrame
	// if the log already names the frame
	Frame int
}

// NoFrame is the Frame of a backtrace line in which the log already names the function.
const NoFrame = -1

// A LineElement is an element of a Line, in the Printer's form.
type LineElement struct {
	Appended []byte // bytes appended by AppendElement

	// Text[Start:End] is the text of the element, or empty. For a backtrace element alone on its
	// line, it extends from the first frame to the last.
	Start, End int
}

// An Element is an element of a line, with its answer.
type Element struct {
	Tag    markup.Tag
	Answer *Resolved      // set for bt, pc and data elements, and for raw frames, which have no Tag
	Name   string         // logged name of a symbol or dump file
	Shown  string         // demangled name of a symbol
	Type   string         // type of a dump file
	Values []DictValue    // values of a hexdict
	Module *ElementModule // set for a module (TagModule) or maps (TagMMap), nil otherwise
}

// A DictValue is a value of a hexdict.
type DictValue struct {
	Key    string
	Value  uint64
	Answer *Resolved // nil if no module covers the value
}

// An ElementModule is a module with its maps so far, or later maps of a module.
type ElementModule struct {
	Number uint64 // ID of the module in the log
	Name   string // as logged
	ID     buildid.ID
	Maps   []Mapping // by address
}

// A Mapping is an address range mapped to a module.
type Mapping struct {
	Start, End uint64 // first and last address
	Offset     uint64 // module-relative address of Start
	Mode       markup.Mode
}

// A record holds the bytes that the printer appended for an element of the current line, and the
// element's place in the line's text.
type record struct {
	appended   []byte
	start, end int // offsets in the text
	// set for a module or its maps; the printer sets appended when all maps are known
	module *moduleLine
}

type textPrinter struct{}

func (textPrinter) AppendLine(dst []byte, l *Line) []byte {
	return append(append(dst, l.Text...), l.EOL...)
}

func (textPrinter) AppendElement(dst []byte, _ *Element) []byte { return dst }

type printing struct {
	layout       layout.Line
	quick        bool   // neither colours nor links nor a Display are used
	before       []byte // scratch: text that lines of inlined calls repeat
	printer      Printer
	records      *elementRecords // records of the line's elements; nil if the printer needs none
	part         int             // bytes of text after which a longer line is printed in parts
	flushed      flushed
	inPlace      bool   // layout.Buf is the free space after ready: see layOutInPlace
	spare        []byte // memory of layout.Buf while inPlace is set
	processKey   string // key of the line's process
	printed      Line
	onAnswer     func(*Resolved) // Options.Resolved
	own          ownFrames       // Display.Own
	needsSources bool            // onAnswer or the printer needs answers with their sources
	resolved     Resolved        // scratch of recordAnswer

	sourceOf func(symbolize.Location, *symbolize.Frame) symbolize.Snippet // Paths.Source
	// source lines are printed below frames
	printsSources bool
	snippets      layout.SourceLines
	output
}

// flushed is the part of the unfinished line that Flush has printed. The finished line is laid out
// again from its start, since its text may be repeated, or belong to a module line.
type flushed struct {
	text int // bytes of the line that were printed
	laid int // bytes of output for text; the finished line must omit these

	// Facts about the part of the line that Flush has read. They bound the bytes that each Flush
	// rereads: see holdsElement. A checkpoint omits them: after a restart the line is read once
	// more.
	resumes    bool      // state, cur and pieces are valid for the end of text
	state, cur sgr.State // see layout
	pieces     int
	checked    int  // bytes of the line that were found to have no element
	held       bool // Flush prints no more of the line, since the line has an element
}

// recordElement adds a record of an element in the current line. The element's text begins at start
// and has been laid out.
func (p *printing) recordElement(start int, e Element) {
	if p.records != nil {
		p.records.add(p.printer, start, len(p.layout.Buf), &e)
	}
}

type elementRecords struct {
	records []record
	frames  []LineFrame   // frames in the text so far
	size    int           // approximate bytes of records
	element Element       // last element
	line    []LineElement // elements of the line being printed
	made    []byte        // memory for the printer's output
}

func (n *elementRecords) add(p Printer, start, end int, e *Element) {
	n.element = *e
	space := n.made[len(n.made):]
	made := p.AppendElement(space, &n.element)
	if cap(made) == cap(space) {
		n.made = n.made[:len(n.made)+len(made)]
	} else { // the output outgrew the space and has moved
		n.made = made
	}
	r := record{appended: made[:len(made):len(made)], start: start, end: end}
	n.element = Element{}
	n.records = append(n.records, r)
	n.size += len(r.appended)
}

// addModule adds a record for m, which may get more maps.
func (n *elementRecords) addModule(m *moduleLine) {
	if n != nil {
		n.records = append(n.records, record{module: m})
	}
}

// addFrame records that the i-th frame of the current element begins at this offset in the text.
func (n *elementRecords) addFrame(at, i int) {
	if n != nil {
		n.frames = append(n.frames, LineFrame{at, i})
	}
}

func (n *elementRecords) endLastRecord(end int) {
	if n != nil && len(n.records) > 0 {
		n.records[len(n.records)-1].end = end
	}
}

func (n *elementRecords) reset() {
	if n != nil {
		n.records, n.frames, n.size = n.records[:0], n.frames[:0], 0
		if n.made = n.made[:0]; cap(n.made) > outputChunk {
			n.made = nil
		}
	}
}

// takeRecords empties n, and returns its records as copies that the caller owns.
func (n *elementRecords) takeRecords() (records []record) {
	if n != nil {
		records, n.records = n.records, nil
		for i := range records {
			records[i].appended = bytes.Clone(records[i].appended)
		}
		n.reset()
	}
	return records
}

func (n *elementRecords) grow(bytes int) {
	if n != nil {
		n.size += bytes
	}
}

// full reports whether the records have reached their limit and must be printed.
func (n *elementRecords) full() bool { return n != nil && n.size >= maxElements }

// elements returns the elements of a line whose text has the given length. They are valid until the
// next line.
func (n *elementRecords) elements(p Printer, records []record, text int) []LineElement {
	n.line = n.line[:0]
	for _, r := range records {
		if r.module != nil {
			r.appended, r.start, r.end = p.AppendElement(nil, r.module.element()), r.module.at, r.module.end
		}
		if r.end < 0 {
			r.end = text
		}
		n.line = append(n.line, LineElement{r.appended, r.start, r.end})
	}
	return n.line
}

// print prints the text and records of the current line so far. If continues is set, another part
// of the line follows.
func (p *printing) print(eol []byte, continues bool) {
	if p.records == nil && p.flushed.laid == 0 { // like textPrinter, without a call
		if p.layout.Display != nil {
			p.ready = p.layout.Display.Print(p.ready, p.layout.Buf, eol, p.of, continues)
			p.layout.Buf = p.layout.Buf[:0]
			return
		}
		if p.inPlace {
			p.takePlace()
		} else {
			p.ready = append(p.ready, p.layout.Buf...)
			p.layout.Buf = p.layout.Buf[:0]
		}
		p.ready = append(p.ready, eol...)
		return
	}
	l := &p.printed
	*l = Line{Number: p.of, Process: p.processKey, Text: p.layout.Buf, EOL: eol, Continues: continues}
	if p.records != nil {
		l.Elements = p.records.elements(p.printer, p.records.records, len(p.layout.Buf))
		l.Frames = p.records.frames
	}
	p.printLine(l)
	p.records.reset()
	if p.layout.Display != nil {
		p.layout.Display.Forget()
	}
	if p.layout.Buf = p.layout.Buf[:0]; cap(p.layout.Buf) > 4*p.part {
		p.layout.Buf = nil
	}
}

// layOutInPlace lets the current line be laid out in the free space after the finished output,
// which saves a copy. Until print is called, nothing else may be added to that output. If the
// printer needs more than the text, layOutInPlace does nothing.
func (p *printing) layOutInPlace() {
	n := len(p.ready)
	if p.records == nil && p.flushed.laid == 0 && len(p.layout.Buf) == 0 && p.layout.Display == nil && cap(p.ready) > n {
		p.spare, p.layout.Buf, p.inPlace = p.layout.Buf, p.ready[n:n], true
	}
}

// leavePlace undoes layOutInPlace for a line that is dropped.
func (p *printing) leavePlace() {
	if p.inPlace {
		p.spare, p.layout.Buf, p.inPlace = nil, p.spare, false
	}
}

// takePlace adds the line that was laid out after a call of layOutInPlace to the finished output.
func (p *printing) takePlace() {
	n := len(p.ready)
	if cap(p.layout.Buf) == cap(p.ready)-n {
		p.ready = p.ready[:n+len(p.layout.Buf)]
	} else { // the line outgrew the space and has moved
		p.ready = append(p.ready, p.layout.Buf...)
	}
	p.spare, p.layout.Buf, p.inPlace = nil, p.spare, false
}

// printLine prints a line without the part that Flush has printed.
func (p *printing) printLine(l *Line) {
	p.ready = p.layout.Display.EndTrace(p.ready)
	if n := min(p.flushed.laid, len(l.Text)); n > 0 {
		l.Text = l.Text[n:]
		p.flushed.laid -= n
	}
	p.ready = p.printer.AppendLine(p.ready, l)
}

// printLarge prints a part of the current line if its text or its records have reached their limit.
func (p *printing) printLarge() {
	if len(p.layout.Buf) >= p.part || p.records.full() {
		p.printPart()
	}
}

// printPart is not inlined: printLarge can then be inlined.
//
//go:noinline
func (p *printing) printPart() {
	p.print(nil, true)
	p.sendLarge()
}
