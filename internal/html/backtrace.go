package html

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// A Kind classifies a line of a backtrace by its frame.
type Kind uint8

const (
	Other      Kind = iota // a line between frames
	Own                    // a frame of the program, with a name
	System                 // a frame of the system, or of one of its libraries
	Unresolved             // a frame without a name
)

// A Backtrace holds the lines of a backtrace. The Page keeps no reference to them.
type Backtrace struct {
	// Key is equal for equal backtraces. It is empty for the rest of a long backtrace, which is
	// not counted.
	Key     string
	Time    []byte // time in the log, or empty
	Message []byte // the line before the backtrace
	Rows    []Row
	Beside  bool // the backtrace is in the same report as the preceding one

	// These fields are needed only for a new backtrace.
	Kind  string // kind of the crash or error; empty if none
	Role  string // role in the report, such as freed; or empty
	Title Detail // detail of the frame that names the backtrace in the index
	About int    // index in Rows of the own frame that the backtrace is about; -1: none
}

// A Row is a line of a backtrace.
type Row struct {
	Text   []byte // without its line end; colour sequences become colours
	Ended  bool   // the line has a line end
	Kind   Kind
	More   bool    // the line belongs to the preceding row's frame
	Object string  // base name of the module of a system frame
	Detail *Detail // set in a new backtrace, for an own frame or one without a name
}

// A Detail holds the facts that a page shows beside the text of a frame or an address.
type Detail struct {
	Function string
	File     string // name of the source file, as printed
	Line     uint32
	URL      string // URL of the source; empty: no link
	Module   string
	Offset   uint64 // offset in the module
	BuildID  string
	Reason   string       // why the address has no name; empty if it has one
	Source   []SourceLine // lines around Line
	Note     string       // remark on the source, such as that it is not verified
}

// A SourceLine is a line of a source file.
type SourceLine struct {
	Text   []byte // the line with its number
	Marked bool   // the line is the frame's line
}

// Frames prints lines with frames that do not form a backtrace. These frames have no entry in the
// index.
func (p *Page) Frames(rows []Row) {
	p.endRow()
	if !p.large {
		p.closeBlock()
		p.html = appendRows(p.html, rows, nil)
	}
	p.chunkRows(rows, -1)
	p.grown()
}

// Large reports whether the page is large. Then only frames of new backtraces need Details.
func (p *Page) Large() bool { return p.large }

// Known reports whether a backtrace with this key needs no Details: it is on the page already, its
// key is empty, or the page has maxDistinct other backtraces.
func (p *Page) Known(key string) bool {
	_, known := p.distinct.byKey[key]
	return known || key == "" || len(p.distinct.byKey) >= maxDistinct
}

// Backtrace prints a backtrace. In a new backtrace, each frame unfolds to its Detail. A repeated
// backtrace is counted, and folded as a whole. A backtrace that has no entry in the index is
// unfolded.
func (p *Page) Backtrace(b *Backtrace) {
	p.endRow()
	entry, isNew := p.distinct.count(b, p.line+1)
	if !p.large {
		p.closeBlock()
		p.room()
		grouped := p.group.begin(p, isNew, b.Beside)
		from := len(p.html)
		if isNew {
			p.html = appendNew(p.html, b, entry)
			p.distinct.sections = append(p.distinct.sections, section{len(p.pieces), from, len(p.html), b.Beside})
		} else {
			p.html = appendAgain(p.html, b, entry)
		}
		p.group.end(p, grouped)
	} else if isNew && p.distinct.size < maxSections {
		from := len(p.out)
		p.out = p.rest.begin(p.out, b.Beside)
		p.out = appendNew(p.out, b, entry)
		p.distinct.size += len(p.out) - from
	} else {
		if isNew {
			entry.absent = true
		}
		p.rest.broken = true
	}
	mark := 0
	if entry != nil && !entry.absent {
		mark = entry.number
	}
	p.chunkRows(b.Rows, mark)
	p.grown()
}

// chunkRows counts rows as lines of the page, and adds them to the chunks if the page has chunks.
// backtrace belongs to the first row: see chunk.addRow.
func (p *Page) chunkRows(rows []Row, backtrace int) {
	for i := range rows {
		p.row(rows[i].Ended)
		if p.inChunks() {
			p.chunk.addRow(&rows[i], backtrace)
		}
		backtrace = -1
	}
}

// appendRow appends the text of a line.
func appendRow(dst []byte, r *Row) []byte {
	dst = appendLine(dst, r.Text, inElement)
	if r.Ended {
		dst = append(dst, '\n')
	}
	return dst
}

// appendAgain appends a repeated backtrace. It is folded, and has a link to the first backtrace
// with this key, whose entry is e. If e is nil, the backtrace is not counted, and is unfolded.
func appendAgain(dst []byte, b *Backtrace, e *entry) []byte {
	dst = append(dst, `<details class="r"`...)
	if e == nil {
		dst = append(dst, ` open><summary>Backtrace`...)
	} else {
		dst = append(dst, `><summary>Backtrace `...)
		dst = append(strconv.AppendInt(dst, int64(e.number), 10), " again"...)
	}
	dst = append(dst, "</summary>\n<pre>\n"...)
	for i := range b.Rows {
		dst = appendRow(dst, &b.Rows[i])
	}
	dst = append(dst, "</pre>"...)
	if e != nil {
		dst = append(dst, `<p><a href="#c`...)
		dst = strconv.AppendInt(dst, int64(e.number), 10)
		dst = append(dst, `">Backtrace `...)
		dst = append(strconv.AppendInt(dst, int64(e.number), 10), "</a></p>"...)
	}
	return append(dst, "</details>\n"...)
}

func appendNew(dst []byte, b *Backtrace, e *entry) []byte {
	dst = append(dst, `<details class="b`...)
	if e.kind == "" {
		dst = append(dst, ` o`...)
	}
	dst = strconv.AppendInt(append(dst, `" id="c`...), int64(e.number), 10)
	dst = strconv.AppendInt(append(dst, `" open><summary>Backtrace `...), int64(e.number), 10)
	dst = append(dst, e.label...)
	dst = append(dst, "</summary>\n"...)
	dst = appendRows(dst, b.Rows, b.own())
	return append(dst, "</details>\n"...)
}

// appendRows appends the lines of a backtrace. own, which may be nil, is the row of the program's
// own frame that the backtrace is about. Its detail is unfolded. Without this row, the frames of
// the system are unfolded.
func appendRows(dst []byte, rows []Row, own *Row) []byte {
	for i := 0; i < len(rows); {
		r := &rows[i]
		n := 1
		switch {
		case r.Kind == System:
			for i+n < len(rows) && rows[i+n].Kind == System {
				n++
			}
			dst = appendSystem(dst, rows[i:i+n], own == nil)
		case r.Kind == Other || r.Detail == nil:
			for i+n < len(rows) && rows[i+n].Kind != System && rows[i+n].Detail == nil {
				n++
			}
			dst = append(dst, "<pre>\n"...)
			for k := range n {
				dst = appendRow(dst, &rows[i+k])
			}
			dst = append(dst, "</pre>\n"...)
		default:
			for i+n < len(rows) && rows[i+n].More {
				n++
			}
			dst = appendFrame(dst, rows[i:i+n], r == own)
		}
		i += n
	}
	return dst
}

// own returns the row with the index b.About: the program's own frame that the backtrace is about.
// It returns nil if there is none.
func (b *Backtrace) own() *Row {
	if b.About < 0 || b.About >= len(b.Rows) {
		return nil
	}
	return &b.Rows[b.About]
}

// maxObjects bounds the objects named in the summary of system frames.
const maxObjects = 4

// appendSystem appends consecutive frames of the system. They are folded to one line unless open is
// set.
func appendSystem(dst []byte, rows []Row, open bool) []byte {
	dst = append(dst, `<details class="y"`...)
	if open {
		dst = append(dst, " open"...)
	}
	dst = append(dst, "><summary>"...)
	frames := 0
	for i := range rows {
		if !rows[i].More {
			frames++
		}
	}
	dst = strconv.AppendInt(dst, int64(frames), 10)
	if dst = append(dst, " frame"...); frames > 1 {
		dst = append(dst, 's')
	}
	var objects []string
	for i := range rows {
		o := rows[i].Object
		if o == "" || len(objects) > 0 && objects[len(objects)-1] == o || slices.Contains(objects, o) {
			continue
		}
		if len(objects) == maxObjects {
			dst = append(dst, " of more than "+strconv.Itoa(maxObjects)+" objects"...)
			objects = nil
			break
		}
		objects = append(objects, o)
	}
	for i, o := range objects {
		if i == 0 {
			dst = append(dst, " of "...)
		} else {
			dst = append(dst, ", "...)
		}
		dst = appendEscaped(dst, []byte(shorten(o)))
	}
	dst = append(dst, "</summary>\n<pre>\n"...)
	for i := range rows {
		dst = appendRow(dst, &rows[i])
	}
	return append(dst, "</pre></details>\n"...)
}

// appendFrame appends a frame with its detail. If first is set, a detail with source text or a
// reason is unfolded. A <br> is between the lines of a frame, for browsers without the style.
func appendFrame(dst []byte, rows []Row, first bool) []byte {
	d := rows[0].Detail
	dst = append(dst, `<details class="f`...)
	if rows[0].Kind == Unresolved {
		dst = append(dst, " u"...)
	}
	dst = append(dst, '"')
	if first && (len(d.Source) > 0 || d.Reason != "") {
		dst = append(dst, " open"...)
	}
	dst = append(dst, "><summary><code>"...)
	for i := range rows {
		if i > 0 {
			dst = append(dst, "<br>"...)
		}
		dst = appendNamed(dst, &rows[i], d.Function)
	}
	dst = append(dst, "</code></summary>\n"...)
	dst = appendDetail(dst, d)
	return append(dst, "</details>\n"...)
}

// appendNamed appends the line of a frame. Unless the line has colours, the name of the function is
// bold. The address, and the module with the offset, are then dim, if the line has them.
func appendNamed(dst []byte, r *Row, function string) []byte {
	at := -1
	if function != "" && bytes.IndexByte(r.Text, esc) < 0 {
		at = bytes.Index(r.Text, []byte(function))
	}
	if at < 0 {
		return appendRow(dst, r)
	}
	end := at + len(function)
	address, place := at, len(r.Text)
	if i := bytes.LastIndex(r.Text[:at], []byte(" 0x")); i >= 0 && bytes.IndexByte(bytes.TrimRight(r.Text[i+1:at], " "), ' ') < 0 {
		address = i + 1
	}
	if i := bytes.LastIndex(r.Text[end:], []byte(" (")); i >= 0 && bytes.HasSuffix(r.Text, []byte(")")) {
		place = end + i + 1
	}
	dst = appendEscaped(dst, r.Text[:address])
	dst = appendDim(dst, r.Text[address:at])
	dst = append(appendEscaped(append(dst, "<b>"...), r.Text[at:end]), "</b>"...)
	dst = appendEscaped(dst, r.Text[end:place])
	dst = appendDim(dst, r.Text[place:])
	if r.Ended {
		dst = append(dst, '\n')
	}
	return dst
}

// appendDim appends text that only few readers need.
func appendDim(dst, text []byte) []byte {
	if len(text) == 0 {
		return dst
	}
	return append(appendEscaped(append(dst, `<span class="d">`...), text), "</span>"...)
}

// hasPlace reports whether appendPlace has something to append.
func (d *Detail) hasPlace() bool { return d.Function != "" || d.Module != "" }

// appendPlace appends a function with its file and line. If the function is unknown, it appends the
// module and the offset.
func appendPlace(dst []byte, d *Detail) []byte {
	dst = append(dst, "<b>"...)
	if d.Function == "" {
		dst = appendEscaped(dst, []byte(shorten(d.Module[strings.LastIndexByte(d.Module, '/')+1:])))
		dst = strconv.AppendUint(append(dst, "+0x"...), d.Offset, 16)
		return append(dst, "</b>"...)
	}
	dst = appendEscaped(dst, []byte(shorten(d.Function)))
	dst = append(dst, "</b>"...)
	if d.File != "" {
		dst = append(dst, ' ')
		dst = appendFile(dst, d)
	}
	return dst
}

func appendFile(dst []byte, d *Detail) []byte {
	dst = appendEscaped(dst, []byte(shorten(d.File)))
	if d.Line > 0 {
		dst = strconv.AppendUint(append(dst, ':'), uint64(d.Line), 10)
	}
	return dst
}

// executed matches URLs that a browser executes. The template for links to sources makes no such
// URL: see package source.
var executed = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^[\x00-\x20]*(javascript|data|vbscript)[\t\n\r]*:`)
})

// appendDetail appends the details of a frame: its source, and a paragraph with a link and the
// location in the module.
func appendDetail(dst []byte, d *Detail) []byte {
	if len(d.Source) > 0 {
		dst = append(dst, "<pre class=\"s\">\n"...)
		for i := range d.Source {
			dst = appendSource(dst, &d.Source[i])
		}
		dst = append(dst, "</pre>\n"...)
	}
	dst = append(dst, "<p>"...)
	from := len(dst)
	part := func() {
		if len(dst) > from {
			dst = append(dst, " · "...)
		}
	}
	if d.File != "" {
		linked := d.URL != "" && !executed().MatchString(d.URL)
		if linked {
			dst = append(appendEscaped(append(dst, `<a href="`...), []byte(d.URL)), `" rel="noreferrer">`...)
		}
		dst = appendFile(dst, d)
		if linked {
			dst = append(dst, "</a>"...)
		}
	}
	if d.Module != "" {
		part()
		dst = appendEscaped(dst, []byte(shorten(d.Module)))
		dst = strconv.AppendUint(append(dst, "+0x"...), d.Offset, 16)
	}
	if d.BuildID != "" && !strings.Contains(d.Reason, d.BuildID) {
		part()
		dst = appendEscaped(append(dst, "build ID "...), []byte(d.BuildID))
	}
	for _, s := range []string{d.Reason, d.Note} {
		if s != "" {
			part()
			dst = appendEscaped(dst, []byte(shorten(s)))
		}
	}
	return append(dst, "</p>"...)
}

func appendSource(dst []byte, l *SourceLine) []byte {
	if l.Marked {
		return append(appendEscaped(append(dst, "<mark>"...), l.Text), "</mark>\n"...)
	}
	return append(appendEscaped(dst, l.Text), '\n')
}
