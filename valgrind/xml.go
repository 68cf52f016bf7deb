package valgrind

import (
	"bytes"
	"cmp"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/symfilter/symfilter/symbolize"
)

// NewXML returns a writer that copies a report to w, as XML that any parser can read. It adds the
// functions, files and lines that the report lacks, and a frame for each inlined call. Well-formed
// records are copied; other records are written in Valgrind's layout. w gets a document for each
// process, one after another. If another process interrupts a report, the rest of the report is
// another document, with the header repeated. Close ends the last document, and does not close w.
// All errors come from w. The writer is for one goroutine.
func NewXML(w io.Writer, o Options) io.WriteCloser {
	x := newRewriter(func() (Document, error) { return following{w}, nil }, o)
	x.single = true
	return x
}

// A Document takes the report of one process.
type Document interface {
	io.Writer

	// End is called after the last Write. pid is the PID of the process, or "" if the report
	// has none.
	End(pid string) error
}

// NewXMLDocuments is [NewXML] with a Document for each process. At most 65 are open at once:
// for 64 nested processes, and for the current one. All errors come from begin and from
// Documents.
func NewXMLDocuments(begin func() (Document, error), o Options) io.WriteCloser {
	return newRewriter(begin, o)
}

// A following is a Document in a writer that receives all documents, one after another.
type following struct{ io.Writer }

func (following) End(string) error { return nil }

// A rewriter converts records to documents.
type rewriter struct {
	*Reader
	o      *Options
	t      *tracker
	names  *namer
	begin  func() (Document, error)
	single bool // all documents go to one writer

	docs  []*xmlDocument // documents not yet ended
	cur   *xmlDocument   // document of the current process; nil before the first record
	early []byte         // text before the first document, as XML
	out   []byte         // text not yet written to cur
	err   error

	check wellFormed
	added []addedFrames // frames added to the current record
}

// An xmlDocument is the state of the document that is written for one process.
type xmlDocument struct {
	of     *process
	to     Document // nil before its beginning, and after an interruption by another process
	path   []string // open elements of a record whose rest follows
	lines  int      // line ends before its end tag; 0 without an end tag in the report
	header []byte   // records about the process, as XML
}

// An addedFrames holds the symbolizer's frames for one frame of a record, innermost first. The last
// frame replaces the record's frame, and the others are the calls inlined into it.
type addedFrames struct {
	frame  int
	frames []symbolize.Frame
}

// Limits of the rewriter, in bytes.
const (
	// bytes of a process's repeated header, and of the text before all documents
	maxHeader = 64 << 10
	maxGap    = 64 // line ends between two records
)

func newRewriter(begin func() (Document, error), o Options) *rewriter {
	x := &rewriter{o: &o, t: newTracker(&o), begin: begin}
	x.names = newNamer(&o, x.t)
	x.Reader = NewReader(x.take)
	return x
}

// Write writes the records that p completes.
func (x *rewriter) Write(p []byte) (int, error) {
	n, err := x.Reader.Write(p)
	x.send()
	return n, cmp.Or(err, x.err)
}

// Close writes the record that the end of the report cuts off, and ends all documents.
func (x *rewriter) Close() error {
	err := x.Reader.Close()
	if x.cur == nil && len(x.early) > 0 { // the report is only text
		x.document()
	}
	x.endAll(func(*xmlDocument) bool { return true })
	x.t.finish()
	return cmp.Or(err, x.err)
}

// send writes the collected text to the current document.
func (x *rewriter) send() {
	if len(x.out) > 0 && x.err == nil {
		_, x.err = x.cur.to.Write(x.out)
	}
	x.out = x.out[:0]
}

func (x *rewriter) take(rec *Record) error {
	x.names.answers.time = time.Time{}
	before := x.t.cur
	switch x.t.changeProcess(rec) {
	case begins, resumes:
		if rec.Name != document && x.cur != nil {
			x.cur.lines = rec.gap
		}
		x.send()
		x.endAll(func(d *xmlDocument) bool { return d.of != x.t.cur && !slices.Contains(x.t.open, d.of) })
		if x.cur != nil && x.single {
			x.suspend(x.cur)
		}
		x.cur = nil
		if rec.Name == document {
			x.document()
		}
	case ends: // the end tag waits: a forked process may continue
		x.t.reportUnplaced(before)
		x.document().lines = rec.gap
	case same:
		if !before.learnHeader(rec) {
			x.t.learn(rec)
		}
		x.t.checkVersion(rec)
		x.writeRecord(rec)
	}
	if len(x.out) >= sendSize {
		x.send()
	}
	return x.err
}

// document returns the current process's document, and begins it if necessary.
func (x *rewriter) document() *xmlDocument {
	if x.cur == nil {
		i := slices.IndexFunc(x.docs, func(d *xmlDocument) bool { return d.of == x.t.cur })
		if i < 0 {
			i = len(x.docs)
			x.docs = append(x.docs, &xmlDocument{of: x.t.cur})
		}
		x.cur = x.docs[i]
	}
	d := x.cur
	if d.to == nil && x.err == nil {
		d.to, x.err = x.begin()
		x.out = append(append(x.out, `<?xml version="1.0"?>`+"\n\n<"+document+">"...), d.header...)
		if len(x.early) > 0 {
			x.out = append(x.out, x.early...)
			x.early = nil
		}
	}
	return d
}

func (x *rewriter) endAll(ended func(*xmlDocument) bool) {
	x.send()
	kept := x.docs[:0]
	for _, d := range x.docs {
		if !ended(d) {
			kept = append(kept, d)
			continue
		}
		x.suspend(d)
		if x.cur == d {
			x.cur = nil
		}
	}
	x.docs = kept
}

// suspend writes the end of a document. If its process continues later, the method document begins
// another document.
func (x *rewriter) suspend(d *xmlDocument) {
	if d.to == nil || x.err != nil {
		return
	}
	end := x.closePath(nil, d)
	lines := 2
	if d.lines > 0 {
		lines = min(d.lines, maxGap)
	}
	for range lines {
		end = append(end, '\n')
	}
	end = append(end, "</"+document+">\n"...)
	if _, x.err = d.to.Write(end); x.err == nil {
		x.err = d.to.End(d.of.pid)
	}
	d.to = nil
}

// closePath appends a comment that the rest of the record open in d is missing, and then the end
// tags of the record's open elements.
func (x *rewriter) closePath(dst []byte, d *xmlDocument) []byte {
	if len(d.path) == 0 {
		return dst
	}
	dst = append(dst, missingRest...)
	for i := len(d.path) - 1; i >= 0; i-- {
		dst = append(appendName(append(dst, "</"...), d.path[i]), '>')
	}
	d.path = d.path[:0]
	return dst
}

const (
	missingRest = "\n<!-- the rest is missing -->\n"
	missingText = "<!-- zeros: text was lost here when several processes wrote to the same file -->"
)

// writeRecord writes a record that does not begin or end a document.
func (x *rewriter) writeRecord(rec *Record) {
	if rec.Name == "" && x.cur == nil && x.t.cur.number == 0 { // text before the first document
		if text := textOf(rec); len(text) > 0 && len(x.early)+len(text) < maxHeader {
			x.early = appendXML(append(x.early, '\n'), bytes.TrimSpace(text))
		}
		return
	}
	d := x.document()
	if !rec.Continued {
		x.out = x.closePath(x.out, d)
	}
	x.findAdded(rec)
	start := len(x.out)
	if rec.Name != "" && x.check.check(rec.raw, d.path) && x.check.hasOpen(rec.open) && (len(x.check.frames) == len(rec.Frames) || len(x.added) == 0) {
		x.appendLead(rec, rec.gap)
		x.appendRaw(rec)
		d.path = append(d.path[:0], rec.open...)
	} else {
		x.appendLead(rec, max(1, rec.gap))
		x.appendRecord(rec, d)
	}
	switch rec.Name {
	case "protocolversion", "protocoltool", "pid", "ppid", "tool", "args":
		if x.single && len(d.path) == 0 && len(d.header)+len(x.out)-start < maxHeader {
			d.header = append(d.header, x.out[start:]...)
		}
	}
}

// appendLead appends the line ends and the blanks before a record.
func (x *rewriter) appendLead(rec *Record, lines int) {
	if rec.Continued {
		return
	}
	for range min(lines, maxGap) {
		x.out = append(x.out, '\n')
	}
	x.out = append(x.out, rec.lead...)
}

// findAdded finds the frames of a record to which the symbolizer adds names or lines.
func (x *rewriter) findAdded(rec *Record) {
	x.added = x.added[:0]
	for i := range rec.Items {
		it := &rec.Items[i]
		if it.Name != "stack" || it.Leaf || it.First == it.Last {
			continue
		}
		index := it.First
		for s, frames := range x.names.all(rec.Frames[it.First:it.Last]) {
			if len(frames) > 0 {
				x.added = append(x.added, addedFrames{index, frames})
			}
			index += len(s.frames)
		}
	}
}

// appendRaw appends the bytes of a record, with the symbolizer's frames and names added.
func (x *rewriter) appendRaw(rec *Record) {
	from := 0
	for i := range x.added {
		a := &x.added[i]
		at := x.check.frames[a.frame]
		if at.from < 0 || at.to < 0 {
			continue
		}
		const tag = "<frame>"
		start := at.from + len(tag)
		inside := rec.raw[start:at.to]
		end := start + len(bytes.TrimRight(inside, blanks)) // end of the last field
		separator := inside[:len(inside)-len(bytes.TrimLeft(inside, blanks))]
		place := inside // address and object
		if n := bytes.Index(place, []byte("<fn>")); n >= 0 {
			place = place[:n]
		}
		place = bytes.TrimRight(place, blanks)
		before := rec.raw[len(bytes.TrimRight(rec.raw[:at.from], blanks)):at.from]

		x.out = append(x.out, rec.raw[from:at.from]...)
		for j := range a.frames[:len(a.frames)-1] {
			x.out = append(append(x.out, tag...), place...)
			x.out = x.appendNames(x.out, &a.frames[j], true, separator)
			x.out = append(append(append(x.out, rec.raw[end:at.to]...), "</frame>"...), before...)
		}
		x.out = append(x.out, rec.raw[at.from:end]...)
		x.out = x.appendNames(x.out, &a.frames[len(a.frames)-1], rec.Frames[a.frame].Fn == nil, separator)
		from = end
	}
	x.out = append(x.out, rec.raw[from:]...)
}

const blanks = " \t\r\n"

// appendNames appends the symbolizer's fields of a frame, with a separator before each.
func (x *rewriter) appendNames(dst []byte, f *symbolize.Frame, named bool, separator []byte) []byte {
	field := func(name, text string) {
		dst = append(append(append(dst, separator...), '<'), name...)
		dst = appendXML(append(dst, '>'), []byte(text))
		dst = append(append(append(dst, "</"...), name...), '>')
	}
	if name := x.names.function(f); named && name != "" {
		field("fn", name)
	}
	if f.File == "" {
		return dst
	}
	file := x.o.report().ShownFile(f.File)
	if i := strings.LastIndexByte(file, '/') + 1; i > 0 {
		field("dir", file[:max(1, i-1)])
		file = file[i:]
	}
	field("file", file)
	if f.HasLine && f.Line > 0 {
		dst = append(append(dst, separator...), "<line>"...)
		dst = append(appendDecimal(dst, uint64(f.Line)), "</line>"...)
	}
	return dst
}
