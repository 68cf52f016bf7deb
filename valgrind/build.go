package valgrind

import (
	"bytes"
	"slices"
)

// A span is a part of the buffer.
type span struct {
	from, to int32
	escaped  bool // holds a '&'
}

func (s span) is() bool { return s.to > 0 }

type rawItem struct {
	name        string
	text        span
	depth       int32
	first, last int32
	leaf        bool
}

type rawFrame struct {
	ip, line           uint64
	is                 bool // it has an ip,
	raw                span // which is no number
	obj, fn, dir, file span
}

func (r *Reader) span(from, to int) span {
	return span{int32(from), int32(to), bytes.IndexByte(r.buf[from:to], '&') >= 0}
}

// closeTag ends the innermost element of this name, and those in it. One that
// is not open is passed over.
func (r *Reader) closeTag(name []byte) {
	if string(name) == document {
		r.endRecord()
		r.event("/" + document)
		r.documents = max(0, r.documents-1)
		return
	}
	for i := len(r.open) - 1; i >= 0; i-- {
		if r.open[i] != string(name) {
			continue
		}
		r.closeTo(i)
		if i == 0 {
			r.emit(false)
		}
		return
	}
}

// closeTo ends the elements from the i-th open one on.
func (r *Reader) closeTo(i int) {
	if r.stack > 0 && i <= r.stackAt {
		r.endStack()
	}
	r.open = r.open[:i]
}

// openTag begins an element whose tag has n bytes.
func (r *Reader) openTag(tag []byte, n int, force bool) bool {
	name, kind := known(tag)
	if r.working && (kind == topLevel || name == "usercomment") {
		r.endRecord()
	}
	if isLoss(name) { // Valgrind 3.26.0 does not end still_reachable
		for i := 1; i < len(r.open); i++ {
			if isLoss(r.open[i]) {
				r.closeTo(i)
			}
		}
	}
	if name == document {
		r.pos += n
		r.seek = r.pos
		r.documents = min(r.documents+1, maxNesting)
		r.event(document)
		return true
	}
	if b := r.buf[r.pos : r.pos+n]; b[n-2] == '/' { // <name/>
		r.begin(name, r.pos)
		r.whole = true
		r.leaf(name, span{}, r.pos+n)
		return true
	}
	if kind == container || kind == topLevel {
		r.begin(name, r.pos)
		r.push(name)
		r.pos += n
		r.seek = r.pos
		return true
	}
	end, next, isLeaf, ok := r.leafEnd(name, kind, r.pos+n, force)
	if !ok {
		return false
	}
	r.begin(name, r.pos)
	if !isLeaf {
		r.push(name)
		r.pos += n
		r.seek = r.pos
		return true
	}
	r.leaf(name, r.span(r.pos+n, end), next)
	return true
}

// begin begins a record if none is at work.
func (r *Reader) begin(name string, at int) {
	if r.working {
		return
	}
	r.rec = Record{Name: name}
	r.at, r.working, r.continued = at, true, false
	r.items, r.frames, r.open = r.items[:0], r.frames[:0], r.open[:0]
}

// push enters an element.
func (r *Reader) push(name string) {
	switch {
	case len(r.open) == 0:
		r.open = append(r.open, name)
		if name == "stack" || name == "frame" { // orphaned: its record's beginning is missing
			r.beginStack(0, 0)
		}
		if name == "frame" {
			r.frames = append(r.frames, rawFrame{})
		}
		return
	case len(r.open) == maxDepth:
		return
	case name == "frame":
		if r.stack == 0 {
			r.beginStack(len(r.open)-1, len(r.open)-1)
		}
		r.endFrame()
		r.frames = append(r.frames, rawFrame{})
	case name == "stack":
		r.beginStack(len(r.open)-1, len(r.open))
	default:
		r.items = append(r.items, rawItem{name: name, depth: int32(len(r.open) - 1)})
	}
	r.open = append(r.open, name)
}

// endFrame drops a frame that nothing is known of.
func (r *Reader) endFrame() {
	if n := len(r.frames); n > 0 {
		if f := &r.frames[n-1]; !f.is && !f.obj.is() && !f.fn.is() && !f.file.is() {
			r.frames = r.frames[:n-1]
		}
	}
}

// beginStack begins a stack at a depth, which ends with the open element at;
// one that is open ends.
func (r *Reader) beginStack(depth, at int) {
	r.stackAt = at
	r.endStack()
	n := int32(len(r.frames))
	r.items = append(r.items, rawItem{name: "stack", depth: int32(depth), first: n, last: n})
	r.stack = len(r.items)
}

func (r *Reader) endStack() {
	r.endFrame()
	if r.stack > 0 {
		r.items[r.stack-1].last = int32(len(r.frames))
		r.stack = 0
	}
}

// leaf takes an element with nothing but text in it; next is behind it.
func (r *Reader) leaf(name string, s span, next int) {
	r.pos, r.seek = next, next
	if len(r.open) == 0 {
		r.items = append(r.items, rawItem{name: name, text: s, leaf: true})
		r.emit(false)
		return
	}
	if r.whole && r.open[len(r.open)-1] == "frame" && len(r.frames) > 0 && r.frameLeaf(name, s) {
		return
	}
	r.items = append(r.items, rawItem{name: name, text: s, depth: int32(len(r.open) - 1), leaf: true})
}

// frameLeaf takes a leaf of a frame, and reports whether it is one that frames
// have.
func (r *Reader) frameLeaf(name string, s span) bool {
	f := &r.frames[len(r.frames)-1]
	switch name {
	case "ip":
		n, ok := number(r.buf[s.from:s.to])
		f.ip, f.is = n, true
		if !ok {
			f.raw = s
		}
	case "line":
		n, ok := number(r.buf[s.from:s.to])
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

// endRecord hands over a record that ends without its end tag.
func (r *Reader) endRecord() {
	if r.working {
		r.emit(true)
	}
}

// event hands over that a document begins or ends.
func (r *Reader) event(name string) {
	if r.err == nil {
		r.err = r.take(&Record{Name: name})
	}
}

// carryOn hands over a record that is too long to keep; what follows comes as
// its continuation.
func (r *Reader) carryOn() {
	name, open := r.rec.Name, slices.Clone(r.open)
	r.emit(true)
	r.rec = Record{Name: name}
	r.at, r.working, r.continued = r.pos, true, true
	r.open = append(r.open[:0], open...)
	for i, name := range open {
		switch {
		case name == "stack":
			r.beginStack(max(0, i-1), i)
		case i > 0 && name != "frame":
			r.items = append(r.items, rawItem{name: name, depth: int32(i - 1)})
		}
		if name == "frame" {
			r.frames = append(r.frames, rawFrame{})
		}
	}
}

// emit hands over the record at work.
func (r *Reader) emit(cut bool) {
	r.endStack()
	rec := &r.rec
	rec.Cut, rec.Continued = cut, r.continued
	r.arena = slices.Grow(r.arena[:0], r.pos-r.at+1)
	items, frames := r.outItems[:0], r.outFrames[:0]
	for i := range r.frames {
		f := &r.frames[i]
		raw := r.bytes(f.raw)
		if !f.is {
			raw = []byte{}
		}
		frames = append(frames, Frame{IP: f.ip, RawIP: raw, Line: f.line, Obj: r.bytes(f.obj), Fn: r.bytes(f.fn), Dir: r.bytes(f.dir), File: r.bytes(f.file)})
	}
	for i := range r.items {
		it := &r.items[i]
		out := Item{Name: it.name, Depth: int(it.depth), Leaf: it.leaf, Text: r.bytes(it.text)}
		if it.name == "rawtext" && bytes.Contains(out.Text, []byte(cdataBegin)) {
			out.Text = appendSections(nil, r.buf[it.text.from:it.text.to])
		}
		if it.name == "stack" && !it.leaf {
			out.First, out.Last = int(it.first), int(it.last)
		}
		items = append(items, out)
	}
	r.outItems, r.outFrames = items, frames
	if len(items) == 1 && items[0].Leaf && items[0].Depth == 0 && items[0].Name == rec.Name {
		rec.Text = items[0].Text
		items = items[:0]
	}
	rec.Items, rec.Frames = items, frames
	r.items, r.frames, r.open = r.items[:0], r.frames[:0], r.open[:0]
	r.working = false
	if r.err == nil {
		r.err = r.take(rec)
	}
}

// bytes returns a part of the buffer with its entities decoded.
func (r *Reader) bytes(s span) []byte {
	if !s.is() {
		return nil
	}
	b := r.buf[s.from:s.to:s.to]
	if !s.escaped {
		return b
	}
	start := len(r.arena)
	r.arena = appendDecoded(r.arena, b)
	return r.arena[start:len(r.arena):len(r.arena)]
}
