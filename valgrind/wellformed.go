package valgrind

import (
	"bytes"
	"slices"
	"unicode/utf8"
)

// A wellFormed checks that bytes of a report may be copied into a document of XML 1.0. It also
// rejects attributes, processing instructions and names with a colon, which Valgrind does not
// write.
type wellFormed struct {
	open   [][]byte   // names of the open elements, outermost first
	frames []rawPlace // frames, in the order of their start tags
	inside int        // index in open of the open frame, plus 1; 0 if no frame is open
}

// A rawPlace is the range of a frame's bytes in its record. from or to is -1 if the frame begins or
// ends in another part of the record.
type rawPlace struct{ from, to int }

// check reports whether b is well-formed XML that begins within the elements in begun, which an
// earlier part of the record has opened. Afterwards, w.open has the elements that are open at the
// end of b.
func (w *wellFormed) check(b []byte, begun []string) bool {
	w.open, w.frames, w.inside = w.open[:0], w.frames[:0], 0
	for i, name := range begun {
		w.open = append(w.open, []byte(name))
		if name == "frame" && w.inside == 0 {
			w.inside = i + 1
			w.frames = append(w.frames, rawPlace{-1, -1})
		}
	}
	for at := 0; at < len(b); {
		lt := bytes.IndexByte(b[at:], '<')
		if lt < 0 {
			return isXMLText(b[at:])
		}
		if !isXMLText(b[at : at+lt]) {
			return false
		}
		at += lt
		n := w.tag(b[at:], at)
		if n == 0 {
			return false
		}
		at += n
	}
	return true
}

// tag reads the tag, comment or CDATA section that b begins with, and returns its size, or 0 if the
// markup is not well-formed. at is the index of b in the record.
func (w *wellFormed) tag(b []byte, at int) int {
	if len(b) < 2 {
		return 0
	}
	if b[1] == '!' {
		return sectionSize(b)
	}
	nameAt := 1
	if b[1] == '/' {
		nameAt = 2
	}
	end := nameAt
	for end < len(b) && isName(b[end]) && b[end] != ':' {
		end++
	}
	if end == nameAt || end == len(b) || end > nameAt+maxName || !isLetter(b[nameAt]) {
		return 0
	}
	name := b[nameAt:end]
	switch {
	case nameAt == 2:
		if n := len(w.open); n == 0 || !bytes.Equal(w.open[n-1], name) || b[end] != '>' {
			return 0
		}
		w.open = w.open[:len(w.open)-1]
		if w.inside > len(w.open) {
			w.inside = 0
			w.frames[len(w.frames)-1].to = at
		}
		return end + 1
	case b[end] == '/':
		if end+1 == len(b) || b[end+1] != '>' || string(name) == "frame" {
			return 0
		}
		return end + 2
	case b[end] != '>' || len(w.open) >= 2*maxDepth:
		return 0
	}
	w.open = append(w.open, name)
	if string(name) == "frame" {
		if w.inside > 0 {
			return 0
		}
		w.inside = len(w.open)
		w.frames = append(w.frames, rawPlace{at, -1})
	}
	return end + 1
}

// hasOpen reports whether exactly these elements are open.
func (w *wellFormed) hasOpen(names []string) bool {
	return slices.EqualFunc(names, w.open, func(name string, open []byte) bool { return string(open) == name })
}

// sectionSize returns the size of the comment or CDATA section at the beginning of b, or 0 if it is
// not well-formed.
func sectionSize(b []byte) int {
	begin, end := "<!--", marks[commentEnd]
	if bytes.HasPrefix(b, []byte(cdataBegin)) {
		begin, end = cdataBegin, marks[cdataEnd]
	} else if !bytes.HasPrefix(b, []byte(begin)) {
		return 0
	}
	n := bytes.Index(b[len(begin):], []byte(end))
	if n < 0 {
		return 0
	}
	text := b[len(begin) : len(begin)+n]
	if !isXML(text) || begin == "<!--" && (bytes.Contains(text, []byte("--")) || bytes.HasSuffix(text, []byte("-"))) {
		return 0
	}
	return len(begin) + n + len(end)
}

// plain is true for bytes that may occur in XML text without a further check.
var plain = func() (is [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		is[c] = c != '&' && c != '<' && c != ']'
	}
	is['\t'], is['\n'] = true, true
	return is
}()

// isXMLText reports whether b may be text between two XML tags.
func isXMLText(b []byte) bool {
	i := 0
	for i < len(b) && plain[b[i]] {
		i++
	}
	if i == len(b) {
		return true
	}
	if rest := b[i:]; !isXML(rest) || bytes.Contains(rest, []byte(marks[cdataEnd])) {
		return false
	}
	for {
		amp := bytes.IndexByte(b[i:], '&')
		if amp < 0 {
			return true
		}
		i += amp
		end := bytes.IndexByte(b[i:min(len(b), i+12)], ';')
		if end < 0 {
			return false
		}
		var is [utf8.UTFMax]byte
		if c := appendEntity(is[:0], string(b[i+1:i+end])); len(c) == 0 || !isXML(c) || b[i+1] == '#' && !isReference(b[i+2:i+end]) {
			return false
		}
		i += end + 1
	}
}

// isReference reports whether digits form a valid XML character reference.
func isReference(digits []byte) bool {
	is := func(c byte) bool { return '0' <= c && c <= '9' }
	if len(digits) > 0 && digits[0] == 'x' {
		digits, is = digits[1:], isHex
	}
	for _, c := range digits {
		if !is(c) {
			return false
		}
	}
	return len(digits) > 0
}

// isXML reports whether XML 1.0 allows all characters of b.
func isXML(b []byte) bool {
	for len(b) > 0 {
		if b[0] < utf8.RuneSelf {
			if b[0] < ' ' && b[0] != '\t' && b[0] != '\n' && b[0] != '\r' {
				return false
			}
			b = b[1:]
			continue
		}
		c, size := utf8.DecodeRune(b)
		if c == utf8.RuneError && size == 1 || c == 0xfffe || c == 0xffff {
			return false
		}
		b = b[size:]
	}
	return true
}

// appendXML appends text escaped for XML. A forbidden control character becomes \x and its
// digits. Invalid UTF-8, U+FFFE and U+FFFF become U+FFFD.
func appendXML(dst, text []byte) []byte {
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		if plain[c] {
			i++
			continue
		}
		size, instead := 1, ""
		switch {
		case c == '&':
			instead = "&amp;"
		case c == '<':
			instead = "&lt;"
		case c == ']':
			if i+2 < len(text) && text[i+1] == ']' && text[i+2] == '>' {
				size, instead = 3, "]]&gt;"
			}
		case c == '\r': // a parser would convert it to a line end
			instead = "&#13;"
		case c < ' ':
			const hex = "0123456789abcdef"
			instead = `\x` + string([]byte{hex[c>>4], hex[c&15]})
		case c >= utf8.RuneSelf:
			var r rune
			r, size = utf8.DecodeRune(text[i:])
			if r == utf8.RuneError && size == 1 || r == 0xfffe || r == 0xffff {
				instead = "\uFFFD"
			}
		}
		if instead != "" {
			dst = append(append(dst, text[from:i]...), instead...)
			from = i + size
		}
		i += size
	}
	return append(dst, text[from:]...)
}

func appendSection(dst, text []byte) []byte {
	dst = append(dst, cdataBegin...)
	for {
		i := bytes.IndexByte(text, ']')
		if i < 0 {
			break
		}
		if bytes.HasPrefix(text[i:], []byte(marks[cdataEnd])) {
			dst = append(appendCharacters(dst, text[:i+2]), marks[cdataEnd]+cdataBegin...)
			text = text[i+2:]
			continue
		}
		dst = appendCharacters(dst, text[:i+1])
		text = text[i+1:]
	}
	return append(appendCharacters(dst, text), marks[cdataEnd]...)
}

// appendCharacters appends text in a CDATA section. It replaces forbidden characters as
// appendXML does.
func appendCharacters(dst, text []byte) []byte {
	for len(text) > 0 {
		c, size := utf8.DecodeRune(text)
		if isXML(text[:size]) {
			dst = append(dst, text[:size]...)
		} else if c < ' ' {
			const hex = "0123456789abcdef"
			dst = append(dst, '\\', 'x', hex[c>>4], hex[c&15])
		} else {
			dst = append(dst, "\uFFFD"...)
		}
		text = text[size:]
	}
	return dst
}
