package valgrind

import (
	"bytes"
	"slices"
)

// A Reader finds the records of a report in the bytes written to it. It passes a record to its
// function take as soon as the record's end is written. It accepts any bytes, and returns only
// errors of take. A Reader is for one goroutine.
//
// A token is a tag, a text with its end tag, or a line of text. Reading a token either succeeds or
// changes nothing: if the lexer needs more bytes, the next Write reads the token again. So the
// result does not depend on the size of the blocks.
type Reader struct {
	take func(*Record) error
	err  error

	in   lexer // the bytes not yet passed on
	rec  builder
	hole bool // NUL bytes were read, followed only by blanks

	encoding string // encoding of the report if it is not supported: its bytes are not converted
}

// NewReader returns a Reader that passes records to take. take must not keep them. Reading ends
// at the first error of take.
func NewReader(take func(*Record) error) *Reader { return &Reader{take: take} }

// Write reads p, and passes on the records that end in it. If a record's end depends on bytes after
// p, a later call passes on the record.
func (r *Reader) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		if r.err != nil {
			return n, r.err
		}
		part := p[n:min(len(p), n+maxRecord)]
		r.add(part)
		n += len(part)
		r.parse(false)
	}
	return len(p), r.err
}

// Close passes on the record that the end of the report cuts off.
func (r *Reader) Close() error {
	if r.err == nil {
		r.parse(true)
	}
	if r.err == nil {
		r.cutOff()
	}
	r.in = lexer{work: r.in.work}
	return r.err
}

// add appends p to the buffer. It keeps the bytes of the current record, and the blanks before it.
func (r *Reader) add(p []byte) {
	keep := r.in.pos
	if r.rec.active {
		keep = r.rec.at
	}
	keep -= len(r.in.blanksBefore(keep))
	r.rec.at -= r.in.add(p, keep)
}

// parse reads the tokens in the buffer; final means that no more bytes follow.
func (r *Reader) parse(final bool) {
	in := &r.in
	for r.err == nil {
		if r.rec.active && r.rec.isTooLong(in.pos) {
			r.carryOn()
			continue
		}
		blanks, at := in.skipBlanks(r.rec.active)
		if at == len(in.buf) {
			if !r.rec.active {
				in.dropLines(blanks, at, final)
			}
			return
		}
		in.lookAt(at, final)
		switch {
		case in.buf[at] == 0 && !r.rec.active:
			r.zeros(at)
			continue
		case in.buf[at] == '<':
			in.pos = at
			in.seek = max(in.seek, at)
			r.tag()
		default:
			r.text()
		}
		r.hole = false
		if in.short {
			return
		}
	}
}

// zeros skips NUL bytes between records, and passes on one record without a name for each run of
// them. Such bytes arise if a process writes at its old position after another process has
// truncated the file.
func (r *Reader) zeros(from int) {
	end := r.in.endOfZeros(from)
	r.in.advance(end)
	if !r.hole {
		r.hole = true
		r.rec.begin("", from)
		r.emit(true)
	}
}

// text reads one line of text outside of records, or the text between two elements of a record.
func (r *Reader) text() {
	in := &r.in
	// the text begins after the last line end of the blanks before it
	if !r.rec.active && in.seek <= in.pos {
		in.pos += bytes.LastIndexByte(in.buf[in.pos:in.word], '\n') + 1
	}
	if end := in.textEnd(r.rec.active); !in.short {
		r.addText(in.pos, end, end)
	}
}

// notTag reads text that begins with the '<' at the current position.
func (r *Reader) notTag() {
	r.in.seek = max(r.in.seek, r.in.pos+1)
	r.text()
}

// addText adds the text between from and end, outside of records or between two elements. It
// then moves the position to next.
func (r *Reader) addText(from, end, next int) {
	in := &r.in
	text := in.buf[from:end]
	in.advance(next)
	switch {
	case len(bytes.TrimSpace(text)) == 0:
	case r.rec.active:
		r.rec.addText(r.rec.span(from, text))
	default:
		r.rec.begin("", from)
		r.rec.addLeaf("", r.rec.span(from, text))
		r.emit(false)
	}
}

func (r *Reader) tag() {
	in := &r.in
	b := in.view[in.pos:]
	nameAt := 1
	if len(b) > 1 {
		switch b[1] {
		case '?':
			r.instruction()
			return
		case '!':
			r.declaration()
			return
		case '/':
			nameAt = 2
		case 'f':
			if r.rec.isInStack() && r.wholeFrame() {
				return
			}
		}
	}
	name, size, ok := in.tagName(in.pos, nameAt)
	switch {
	case in.short:
	case !ok:
		r.notTag()
	case nameAt == 2:
		in.advance(in.pos + size)
		r.endTag(name)
	default:
		r.startTag(name, size)
	}
}

// instruction reads <?…?>. <?xml…?> begins a document.
func (r *Reader) instruction() {
	in := &r.in
	end := in.find(instructionEnd, in.pos)
	switch {
	case end < 0 && len(in.view)-in.pos < maxPath && in.needsMore():
	case end < 0 || end-in.pos > maxPath:
		r.notTag()
	default:
		if bytes.HasPrefix(in.view[in.pos:], []byte("<?xml")) {
			r.cutOff()
			encoding := encodingOf(in.view[in.pos:end])
			if r.rec.latin1 = isLatin1(encoding); r.rec.latin1 || isUTF8(encoding) {
				encoding = ""
			}
			r.encoding = encoding
		}
		in.advance(end + len(marks[instructionEnd]))
	}
}

// declaration reads a comment or a CDATA section. The content of a section becomes text.
func (r *Reader) declaration() {
	in := &r.in
	isComment, isSection := in.has(in.pos, "<!--"), in.has(in.pos, cdataBegin)
	end := cdataEnd
	switch {
	case in.short:
		return
	case isComment:
		end = commentEnd
	case !isSection:
		r.notTag()
		return
	}
	at, next := in.find(end, in.pos), -1
	if !r.rec.active || end == commentEnd {
		next = in.nextError(in.pos)
	}
	switch {
	// an error element begins before the end, so the '<' is text of the program
	case next >= 0 && (at < 0 || next < at):
		r.notTag()
	case at < 0:
		if !in.needsMore() {
			r.notTag()
		}
	case end == cdataEnd:
		r.addText(in.pos+len(cdataBegin), at, at+len(marks[end]))
	default:
		in.advance(at + len(marks[end]))
	}
}

// endTag ends the document, or the innermost element of this name with the elements in it. It
// ignores an end tag without an open element.
func (r *Reader) endTag(name []byte) {
	if string(name) == document {
		r.cutOff()
		r.event("/" + document)
		return
	}
	for i := len(r.rec.open) - 1; i >= 0; i-- {
		if r.rec.open[i] != string(name) {
			continue
		}
		r.rec.closeFrom(i)
		if i == 0 {
			r.emit(false)
		}
		return
	}
}

// startTag begins the element whose tag, of this size, is at the current position. It reads an
// element that contains only text as a whole.
func (r *Reader) startTag(tag []byte, size int) {
	in := &r.in
	name, kind := elementNamed(tag)
	if kind == topLevel || name == "usercomment" {
		r.cutOff()
	}
	if isLoss(name) { // Valgrind 3.26.0 does not end still_reachable
		r.rec.closeLoss()
	}
	at, after := in.pos, in.pos+size
	switch {
	case name == document:
		in.advance(after)
		r.event(document)
	case in.buf[after-2] == '/': // <name/>
		in.advance(after)
		r.rec.begin(name, at)
		r.addLeaf(name, span{}, nil, false)
	case kind == container || kind == topLevel:
		in.advance(after)
		r.rec.begin(name, at)
		r.rec.push(name)
	default:
		text := in.leafAt(name, kind, after)
		if in.short {
			return
		}
		r.rec.begin(name, at)
		if !text.isLeaf {
			in.advance(after)
			r.rec.push(name)
			return
		}
		in.advance(text.next)
		leaf := in.buf[after:text.end]
		r.addLeaf(name, r.rec.span(after, leaf), leaf, text.isCut)
	}
}

// addLeaf adds an element that contains only text. If the element is the whole record, addLeaf
// passes the record on. A cut text is never stored in a frame, since half an address is not an
// address.
func (r *Reader) addLeaf(name string, s span, text []byte, isCut bool) {
	if isCut || !r.rec.addToFrame(name, s, text) {
		r.rec.addLeaf(name, s)
	}
	if len(r.rec.open) == 0 {
		r.emit(false)
	}
}

// cutOff passes on the current record, if any, without its end tag.
func (r *Reader) cutOff() {
	if r.rec.active {
		r.emit(true)
	}
}

// carryOn passes on the first part of a record that is too long to keep. Then it begins another
// record for the rest.
func (r *Reader) carryOn() {
	name, open := r.rec.name, slices.Clone(r.rec.open)
	r.rec.rest = open
	r.emit(true)
	r.rec.resume(name, open, r.in.pos)
}

// event passes on the beginning or end of a document.
func (r *Reader) event(name string) {
	gap := r.in.takeLines()
	if r.err == nil {
		r.err = r.take(&Record{Name: name, gap: gap})
	}
}

// emit passes on the current record. cut is set if the record's rest is missing, or follows as
// another record.
func (r *Reader) emit(cut bool) {
	at := r.rec.at
	rec := r.rec.finish(r.in.buf[at:r.in.pos])
	rec.Cut, rec.encoding = cut, r.encoding
	rec.lead, rec.gap = r.in.blanksBefore(at), r.in.takeLines()
	if r.err == nil {
		r.err = r.take(rec)
	}
}
