package llvmfilter

import "bytes"

// An element is a markup element "{{{tag:field:field}}}" of a line.
type element struct {
	start, end int // offsets in the line
	tag        []byte
	rest       []byte // the fields, after the tag's ':'
	fields     int    // number of fields; an element that ends with ':' has an empty one
}

// nextElement returns the first element of line from the given offset on. An element begins with
// the first "{{{" and ends with the next "}}}", whatever is between. An element without a tag is
// text.
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

// tagEnd returns the offset of the tag's end in the line. Diagnostics about the number of
// fields point there.
func (e *element) tagEnd() int { return e.start + len(opening) + len(e.tag) }

// A field is a field of an element, with its offset in the line.
type field struct {
	text []byte
	at   int
}

// field returns field i, which must exist.
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

// wellNamed reports whether the tag is valid.
func (e *element) wellNamed() bool {
	for _, c := range e.tag {
		if c < 'a' || c > 'z' {
			return false
		}
	}
	return true
}

// contextual reports whether the element makes its line contextual.
func (e *element) contextual() bool {
	switch string(e.tag) {
	case "module", "mmap", "reset":
		return true
	}
	return false
}
