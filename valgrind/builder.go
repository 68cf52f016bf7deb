package valgrind

import (
	"bytes"
	"slices"
)

// A builder collects the parts of the current record. Spans are relative to the record's beginning,
// since the buffer may move.
type builder struct {
	active    bool // a record has begun
	at        int  // index in the buffer at which the record begins
	name      string
	continued bool // an earlier part of the record was passed to Reader.take
	latin1    bool // the report is in ISO 8859-1

	open   []string // names of the open elements, outermost first
	items  []rawItem
	frames []rawFrame
	rest   []string // elements to reopen in the rest of a divided record
	stack  int      // index in items of the open stack, plus 1; 0 if no stack is open
	holder int      // index in open of the element whose end tag closes the open stack

	// buffers of the returned Record, reused for the next one
	record    Record
	outItems  []Item
	outFrames []Frame
	arena     []byte // decoded texts
}

// A span is a range of bytes in the record. The zero span is not set.
type span struct {
	from, to int32
	escaped  bool // the text has an '&', or ISO 8859-1 characters beyond ASCII
}

func (s span) isSet() bool { return s.to > 0 }

type rawItem struct {
	name        string
	text        span
	depth       int32
	first, last int32 // for a stack: its frames are frames[first:last]
	isLeaf      bool
}

type rawFrame struct {
	ip, line           uint64
	hasIP              bool
	raw                span // the text of <ip> if it is not a number
	obj, fn, dir, file span
}

// span returns the span of text, which begins at the given index of the buffer.
func (b *builder) span(at int, text []byte) span {
	from := int32(at - b.at)
	return span{from, from + int32(len(text)), bytes.IndexByte(text, '&') >= 0 || b.latin1 && !isASCII(text)}
}

// begin begins a record, unless one is open.
func (b *builder) begin(name string, at int) {
	if !b.active {
		b.name, b.at, b.active, b.continued = name, at, true, false
	}
}

// resume begins a record that continues a divided record. The given elements are open in it.
func (b *builder) resume(name string, open []string, at int) {
	b.name, b.at, b.active, b.continued = name, at, true, true
	b.open = append(b.open, open...)
	for i, name := range open {
		switch {
		case name == "stack":
			b.beginStack(max(0, i-1), i)
		case i > 0 && name != "frame":
			b.items = append(b.items, rawItem{name: name, depth: int32(i - 1)})
		}
		if name == "frame" {
			b.frames = append(b.frames, rawFrame{})
		}
	}
}

// isTooLong reports whether the record must be divided at the given index of the buffer. Within a
// frame, it allows a longer record, so that few frames are divided.
func (b *builder) isTooLong(at int) bool {
	size := at - b.at
	if size <= maxRecord && len(b.items) < maxItems && len(b.frames) < maxItems {
		return false
	}
	return len(b.open) == 0 || b.open[len(b.open)-1] != "frame" || size > maxRecord+maxLeaf || len(b.items) > 2*maxItems
}

func (b *builder) push(name string) {
	depth := len(b.open)
	if depth == maxDepth {
		return
	}
	b.open = append(b.open, name)
	switch {
	case name == "frame":
		if b.stack == 0 { // the start tag of the frame's stack is missing
			b.beginStack(max(0, depth-1), max(0, depth-1))
		}
		b.dropEmptyFrame()
		b.frames = append(b.frames, rawFrame{})
	case name == "stack":
		b.beginStack(max(0, depth-1), depth)
	case depth > 0:
		b.items = append(b.items, rawItem{name: name, depth: int32(depth - 1)})
	}
}

// closeFrom closes the open elements from index i on.
func (b *builder) closeFrom(i int) {
	if b.stack > 0 && i <= b.holder {
		b.endStack()
	}
	b.open = b.open[:i]
}

// closeLoss closes the open element for a kind of lost memory, if any, and the elements in it.
func (b *builder) closeLoss() {
	if i := slices.IndexFunc(b.open[min(1, len(b.open)):], isLoss); i >= 0 {
		b.closeFrom(i + 1)
	}
}

// isInStack reports whether the innermost open element is a stack, and may contain another element.
func (b *builder) isInStack() bool {
	return b.stack > 0 && len(b.open) < maxDepth && b.open[len(b.open)-1] == "stack"
}

// beginStack ends the open stack, if any, and begins another stack at this depth. holder is the
// index in b.open of the element whose end tag will end the new stack.
func (b *builder) beginStack(depth, holder int) {
	b.holder = holder
	b.endStack()
	n := int32(len(b.frames))
	b.items = append(b.items, rawItem{name: "stack", depth: int32(depth), first: n, last: n})
	b.stack = len(b.items)
}

func (b *builder) endStack() {
	b.dropEmptyFrame()
	if b.stack > 0 {
		b.items[b.stack-1].last = int32(len(b.frames))
		b.stack = 0
	}
}

// dropEmptyFrame drops the last frame if all its fields are empty.
func (b *builder) dropEmptyFrame() {
	if n := len(b.frames); n > 0 {
		if f := &b.frames[n-1]; !f.hasIP && !f.obj.isSet() && !f.fn.isSet() && !f.file.isSet() {
			b.frames = b.frames[:n-1]
		}
	}
}

func (b *builder) addFrame(f *rawFrame) {
	b.dropEmptyFrame()
	b.frames = append(b.frames, *f)
}

// addLeaf adds an element that contains only text.
func (b *builder) addLeaf(name string, text span) {
	b.items = append(b.items, rawItem{name: name, text: text, depth: int32(max(0, len(b.open)-1)), isLeaf: true})
}

// addText adds a text between two elements. Adjacent texts at one depth become one item.
func (b *builder) addText(s span) {
	depth := int32(len(b.open) - 1)
	if n := len(b.items); n > 0 {
		if last := &b.items[n-1]; last.name == "" && last.depth == depth && last.text.to == s.from {
			last.text.to, last.text.escaped = s.to, last.text.escaped || s.escaped
			return
		}
	}
	b.items = append(b.items, rawItem{text: s, depth: depth, isLeaf: true})
}

// addToFrame adds a text element to the open frame. It returns false if no frame is open, if
// frames have no such element, or if the line is not a number.
func (b *builder) addToFrame(name string, s span, text []byte) bool {
	if n := len(b.open); n == 0 || b.open[n-1] != "frame" || len(b.frames) == 0 {
		return false
	}
	f := &b.frames[len(b.frames)-1]
	switch name {
	case "ip":
		n, ok := parseNumber(text)
		f.ip, f.hasIP = n, true
		if !ok {
			f.raw = s
		}
	case "line":
		n, ok := parseNumber(text)
		f.line = n
		return ok
	case "obj":
		f.obj = s
	case "fn":
		f.fn = s
	case "dir":
		f.dir = s
	case "file":
		f.file = s
	default:
		return false
	}
	return true
}

// finish ends the record, whose bytes are buf, and returns it.
func (b *builder) finish(buf []byte) *Record {
	b.endStack()
	b.arena = slices.Grow(b.arena[:0], len(buf)+1)
	items, frames := b.outItems[:0], b.outFrames[:0]
	for i := range b.frames {
		f := &b.frames[i]
		raw := b.text(buf, f.raw)
		if !f.hasIP {
			raw = []byte{}
		}
		frames = append(frames, Frame{
			IP: f.ip, RawIP: raw, Line: f.line,
			Obj: b.text(buf, f.obj), Fn: b.text(buf, f.fn), Dir: b.text(buf, f.dir), File: b.text(buf, f.file),
		})
	}
	for i := range b.items {
		it := &b.items[i]
		out := Item{Name: it.name, Depth: int(it.depth), Leaf: it.isLeaf, Text: b.text(buf, it.text)}
		if it.name == "rawtext" && bytes.Contains(out.Text, []byte(cdataBegin)) {
			out.Text = appendSections(nil, b.inUTF8(buf[it.text.from:it.text.to]))
		}
		if it.name == "stack" && !it.isLeaf {
			out.First, out.Last = int(it.first), int(it.last)
		}
		items = append(items, out)
	}
	b.outItems, b.outFrames = items, frames
	b.record = Record{Name: b.name, Items: items, Frames: frames, Continued: b.continued, raw: buf, open: b.rest}
	b.rest = nil
	if len(items) == 1 && items[0].Leaf && items[0].Depth == 0 && items[0].Name == b.name {
		b.record.Text, b.record.Items = items[0].Text, items[:0]
	}
	b.items, b.frames, b.open = b.items[:0], b.frames[:0], b.open[:0]
	b.active = false
	return &b.record
}

// text returns the text of a span in buf with its entities decoded, or nil if the span is not set.
func (b *builder) text(buf []byte, s span) []byte {
	if !s.isSet() {
		return nil
	}
	text := buf[s.from:s.to:s.to]
	if !s.escaped {
		return text
	}
	start := len(b.arena)
	b.arena = appendDecoded(b.arena, b.inUTF8(text))
	return b.arena[start:len(b.arena):len(b.arena)]
}

// inUTF8 converts a text of the record to UTF-8. Text between records comes from the program,
// so the report's encoding does not apply.
func (b *builder) inUTF8(text []byte) []byte {
	if b.latin1 && b.name != "" {
		return fromLatin1(text)
	}
	return text
}
