package llvmfilter

import "bytes"

// An element is "{{{tag:field:field}}}" in a line.
type element struct {
	start, end int // in the line
	tag        []byte
	rest       []byte // the fields, behind the tag's ':'
	fields     int    // how many there are; an element that ends in ':' has an empty one
}

// nextElement returns the first element of line at or behind at. It begins
// with the first "{{{" and ends with the first "}}}" behind that, whatever is
// between; without a tag it is text.
func nextElement(line []byte, at int) (e element, ok bool) {
	for {
		start := bytes.Index(line[at:], opening)
		if start < 0 {
			return e, false
		}
		start += at
		inner := start + len(opening)
		size := bytes.Index(line[inner:], closing)
		if size < 0 {
			return e, false
		}
		at = inner + size + len(closing)
		tag, rest, colon := bytes.Cut(line[inner:inner+size], colon)
		if len(tag) == 0 {
			continue
		}
		e = element{start: start, end: at, tag: tag, rest: rest}
		if colon {
			e.fields = 1 + bytes.Count(rest, []byte{':'})
		}
		return e, true
	}
}

var colon = []byte{':'}

// tagEnd returns where in the line the tag ends: diagnostics about the number
// of fields point there.
func (e *element) tagEnd() int { return e.start + len(opening) + len(e.tag) }

// A field is one of an element's, and where in the line it starts.
type field struct {
	text []byte
	at   int
}

// field returns field i, which there must be.
func (e *element) field(i int) field {
	f := field{e.rest, e.tagEnd() + 1}
	for {
		end := bytes.IndexByte(f.text, ':')
		if i == 0 {
			if end >= 0 {
				f.text = f.text[:end]
			}
			return f
		}
		f.text = f.text[end+1:]
		f.at += end + 1
		i--
	}
}

// wellNamed reports whether the tag is one that an element may have.
func (e *element) wellNamed() bool {
	for _, c := range e.tag {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// contextual reports whether the element makes its line a contextual one.
func (e *element) contextual() bool {
	switch string(e.tag) {
	case "module", "mmap", "reset":
		return true
	}
	return false
}
