package valgrind

import "bytes"

// A Reader finds the records of a report in the bytes that are written to it. A
// record is handed over as soon as its end has been written. No bytes make it
// fail: its errors are those of the function that takes the records.
type Reader struct {
	take func(*Record) error
	err  error

	buf  []byte // what is not handed over yet
	pos  int    // in buf: the next token, or the blanks before it
	view []byte // buf as far as the token at pos may reach
	seek int    // in buf: how far the token at pos was searched for its end
	word int    // in buf: from pos to this are blanks
	hole bool   // nothing has come since zeros but blanks

	none [len(marks)]int // in buf: each mark is nowhere before this, behind where it was looked for
	next int             // in buf, plus 1: the first error from where it was looked for; 0: not known

	work int // bytes looked at, or moved: a test holds it against what was written

	// The record at work; its parts are offsets in buf.
	rec       Record
	at        int  // where it begins
	working   bool // there is one
	continued bool // its beginning was handed over
	open      []string
	whole     bool // the leaf at work has its end tag: half an address is none
	stackAt   int  // the open element that it ends with
	stack     int  // the item of the open stack, plus 1
	items     []rawItem
	frames    []rawFrame

	documents int // that are open
	outItems  []Item
	outFrames []Frame
	arena     []byte // texts with their entities decoded
}

// NewReader returns a Reader that hands records to take, which must not keep
// them. An error of take ends the reading.
func NewReader(take func(*Record) error) *Reader { return &Reader{take: take} }

// Write reads p. Records whose end is in it have been handed over when it
// returns.
func (r *Reader) Write(p []byte) (int, error) {
	for n := 0; n < len(p); {
		if r.err != nil {
			return n, r.err
		}
		part := p[n:min(len(p), n+maxRecord)]
		r.room(len(part))
		r.buf = append(r.buf, part...)
		n += len(part)
		r.parse(false)
	}
	return len(p), r.err
}

// Close hands over what the report's end has cut off.
func (r *Reader) Close() error {
	if r.err == nil {
		r.parse(true)
	}
	if r.err == nil && r.working {
		r.emit(true)
	}
	r.buf, r.view, r.pos, r.seek, r.word, r.none, r.next = nil, nil, 0, 0, 0, [len(marks)]int{}, 0
	return r.err
}

// room makes room for n bytes by dropping what was handed over, if that is more
// than what stays, which moves.
func (r *Reader) room(n int) {
	start := r.pos
	if r.working {
		start = r.at
	}
	stays := len(r.buf) - start
	if start == 0 || stays > 0 && (len(r.buf)+n <= cap(r.buf) || start < stays) {
		return
	}
	r.buf = r.buf[:copy(r.buf, r.buf[start:])]
	r.work += stays
	r.pos -= start
	r.seek = max(0, r.seek-start)
	r.word = max(0, r.word-start)
	for m := range r.none {
		r.none[m] = max(0, r.none[m]-start)
	}
	r.next = max(0, r.next-start)
	if r.working {
		r.at = 0
		r.shift(int32(start))
	}
}

// shift moves the parts of the record at work.
func (r *Reader) shift(by int32) {
	if by == 0 {
		return
	}
	move := func(s *span) {
		if s.is() {
			s.from -= by
			s.to -= by
		}
	}
	for i := range r.items {
		move(&r.items[i].text)
	}
	for i := range r.frames {
		f := &r.frames[i]
		move(&f.raw)
		move(&f.obj)
		move(&f.fn)
		move(&f.dir)
		move(&f.file)
	}
}

// parse takes the tokens off the buffer. Without final, it stops at one whose
// end may be yet to come.
func (r *Reader) parse(final bool) {
	for r.err == nil {
		if r.working && r.tooLong() {
			r.carryOn()
			continue
		}
		seen := max(r.pos, r.word)
		i := seen
		for i < len(r.buf) && r.buf[i] <= ' ' && (r.working || r.buf[i] != 0) {
			i++
		}
		r.work += i - seen
		r.word = i
		if r.working {
			r.pos = i
		}
		if i == len(r.buf) {
			r.passOver(seen, i, final)
			return
		}
		r.view = r.buf[:min(len(r.buf), i+maxLeaf)]
		force := final && len(r.view) == len(r.buf) || len(r.view) == i+maxLeaf
		if r.buf[i] == 0 && !r.working {
			r.zeros(i)
			continue
		}
		r.hole = false
		if r.buf[i] != '<' {
			if !r.text(force) {
				return
			}
			continue
		}
		r.pos = i
		r.seek = max(r.seek, i)
		if !r.tag(force) {
			return
		}
	}
}

// zeros takes zeros between records: one process cut the file short that another
// goes on to write to. They say once that something is missing.
func (r *Reader) zeros(from int) {
	end := from
	for end < len(r.buf) && r.buf[end] == 0 {
		end++
	}
	r.work += end - from
	r.pos, r.seek, r.word = end, end, end
	if !r.hole {
		r.hole = true
		r.begin("", from)
		r.emit(true)
	}
}

// tooLong reports whether the record at work is to be handed over in parts;
// not within a frame, if possible.
func (r *Reader) tooLong() bool {
	size := r.pos - r.at
	if size <= maxRecord && len(r.items) < maxItems && len(r.frames) < maxItems {
		return false
	}
	return len(r.open) == 0 || r.open[len(r.open)-1] != "frame" || size > maxRecord+maxLeaf || len(r.items) > 2*maxItems
}

// passOver passes over blanks up to i, those from seen on for the first time.
// Behind a line end they may yet begin a line of text.
func (r *Reader) passOver(seen, i int, final bool) {
	if r.working {
		return
	}
	if nl := bytes.LastIndexByte(r.buf[seen:i], '\n'); nl >= 0 {
		r.pos = seen + nl + 1
	}
	if final || i-r.pos > maxLeaf {
		r.pos = i
	}
}

// text takes text that is in no element, a line at a time, or stands between
// elements.
func (r *Reader) text(force bool) bool {
	if !r.working && r.seek <= r.pos { // the blanks before it on its line are its own
		r.pos += bytes.LastIndexByte(r.buf[r.pos:r.word], '\n') + 1
	}
	end := max(r.seek, r.word)
	from := end
search:
	for end < len(r.view) {
		i := 0
		if r.working {
			i = bytes.IndexByte(r.view[end:], '<')
		} else {
			i = bytes.IndexAny(r.view[end:], "<\n")
		}
		if i < 0 {
			end = len(r.view)
			break
		}
		end += i
		if r.view[end] == '\n' {
			break
		}
		switch is, more := r.isTag(end); {
		case more && !force:
			r.seek = end
			return false
		case is || more:
			break search
		}
		end++
	}
	r.work += end - from
	r.seek = end
	if end == len(r.view) && !force {
		return false
	}
	r.stray(r.pos, end)
	return true
}

// isTag reports whether the '<' at this place of the buffer begins a tag, or
// may do so with more bytes.
func (r *Reader) isTag(at int) (is, more bool) {
	if at+1 == len(r.view) {
		return false, true
	}
	behind := 1
	switch r.view[at+1] {
	case '?', '!':
		return true, false
	case '/':
		behind = 2
	}
	_, n, is := r.name(at, behind)
	return is, n == 0
}

// notTag takes the '<' at pos for the beginning of a text.
func (r *Reader) notTag(force bool) bool {
	r.seek = max(r.seek, r.pos+1)
	return r.text(force)
}

// stray takes text up to end that is no element's.
func (r *Reader) stray(from, end int) {
	s := r.span(from, end)
	r.pos, r.seek = end, end
	if len(bytes.TrimSpace(r.buf[from:end])) == 0 {
		return
	}
	if !r.working {
		r.begin("", from)
		r.items = append(r.items, rawItem{text: s, leaf: true})
		r.emit(false)
		return
	}
	depth := int32(len(r.open) - 1)
	if n := len(r.items); n > 0 {
		if last := &r.items[n-1]; last.name == "" && last.depth == depth && last.text.to == s.from { // one text goes on
			last.text.to, last.text.escaped = s.to, last.text.escaped || s.escaped
			return
		}
	}
	r.items = append(r.items, rawItem{text: s, depth: depth, leaf: true})
}

// tag takes what begins with the '<' at pos.
func (r *Reader) tag(force bool) bool {
	b := r.view[r.pos:]
	behind := 1
	if len(b) > 1 {
		switch b[1] {
		case '?':
			return r.instruction(force)
		case '!':
			return r.declaration(force)
		case '/':
			behind = 2
		case 'f':
			if r.stack > 0 && r.open[len(r.open)-1] == "stack" && bytes.HasPrefix(b, []byte("<frame>")) && r.wholeFrame() {
				return true
			}
		}
	}
	name, n, ok := r.name(r.pos, behind)
	switch {
	case n == 0 && !force:
		return false
	case !ok:
		return r.notTag(force)
	case behind == 2:
		r.pos += n
		r.seek = r.pos
		r.closeTag(name)
		return true
	}
	return r.openTag(name, n, force)
}

// name reads the name of the tag at this place of the buffer, which begins so
// far behind it, and returns the length of the tag. An attribute is passed
// over. Without a name, n is 0 if more bytes may make one.
func (r *Reader) name(at, behind int) (name []byte, n int, ok bool) {
	b := r.view[at:]
	i := behind
	for i < len(b) && i <= behind+maxName && isName(b[i]) {
		i++
	}
	switch {
	case i > behind && !isLetter(b[behind]), i > behind+maxName:
		return nil, 1, false
	case i >= len(b):
		return nil, 0, false
	case i == behind:
		return nil, 1, false
	}
	end := i
	if b[end] != '>' {
		if b[end] != '/' && b[end] > ' ' {
			return nil, 1, false
		}
		gt := bytes.IndexAny(b[end:min(len(b), end+maxPath)], "<>")
		switch {
		case gt < 0 && len(b)-end < maxPath:
			return nil, 0, false
		case gt < 0 || b[end+gt] == '<':
			return nil, 1, false
		}
		end += gt
	}
	return b[behind:i], end + 1, true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

func isName(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '-' || c == '.' || c == ':'
}

// instruction takes <?…?>. That of XML begins a document.
func (r *Reader) instruction(force bool) bool {
	end := r.find(instructionEnd, r.pos)
	if end < 0 && len(r.view)-r.pos < maxPath && !force {
		return false
	}
	if end < 0 || end-r.pos > maxPath {
		return r.notTag(force)
	}
	if bytes.HasPrefix(r.view[r.pos:], []byte("<?xml")) {
		r.endRecord()
	}
	r.pos = end + len(marks[instructionEnd])
	r.seek = r.pos
	return true
}

// declaration takes a comment, a CDATA section or another <!…>.
func (r *Reader) declaration(force bool) bool {
	for _, d := range [...]struct {
		begin string
		end   mark
	}{{cdataBegin, cdataEnd}, {"<!--", commentEnd}} {
		b := r.view[r.pos:]
		if len(b) < len(d.begin) && string(b) == d.begin[:len(b)] && !force {
			return false
		}
		if !bytes.HasPrefix(b, []byte(d.begin)) {
			continue
		}
		end := r.find(d.end, r.pos)
		next := -1
		if !r.working || d.end == commentEnd {
			next = r.nextError(r.pos)
		}
		switch {
		case next >= 0 && (end < 0 || next < end): // the program printed this, and not yet the end
			return r.notTag(force)
		case end < 0 && !force:
			return false
		case end < 0:
			return r.notTag(force)
		case d.end == cdataEnd:
			r.stray(r.pos+len(d.begin), end)
		}
		r.pos = end + len(marks[d.end])
		r.seek = r.pos
		return true
	}
	return r.notTag(force)
}
