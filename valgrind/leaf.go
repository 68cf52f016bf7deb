package valgrind

import (
	"bytes"
	"unicode/utf8"

	"github.com/symfilter/symfilter/report"
)

// leafEnd finds the end of the text that begins at from, in an element of this
// name. next is behind its end tag. The element is no leaf where another begins
// in it; ok is false where the bytes that say so are yet to come.
func (r *Reader) leafEnd(name string, k kind, from int, force bool) (end, next int, isLeaf, ok bool) {
	switch name {
	case "usercomment":
		if end, next, ok = r.userEnd(from, force); ok || next < 0 {
			return end, next, true, ok
		}
	case "rawtext":
		if end, next, ok = r.rawEnd(from, force); ok || next < 0 {
			return end, next, true, ok
		}
	case "threadname":
		window := r.view[from:min(len(r.view), from+threadName)]
		if len(window) < threadName && !force {
			return 0, 0, false, false
		}
		if i := bytes.LastIndex(window, []byte("</threadname>")); i >= 0 {
			return from + i, from + i + len("</threadname>"), true, true
		}
	}
	r.whole = true
	for i := max(from, r.seek); ; {
		lt := bytes.IndexByte(r.view[i:], '<')
		if lt < 0 {
			r.work += len(r.view) - i
			r.seek = len(r.view)
			r.whole = false
			end = len(r.view)
			for n := min(len(name)+2, end-from); n > 0; n-- { // the beginning of an end tag
				if string(r.view[end-n:]) == ("</" + name + ">")[:n] {
					r.whole = n > 1
					return end - n, end, true, force
				}
			}
			return end, end, true, force
		}
		r.work += lt
		at := i + lt
		rest := r.view[at:]
		switch closes, more := isEndTag(rest, name); {
		case closes:
			return at, at + len(name) + 3, true, true
		case more && !force:
			r.seek = at
			return 0, 0, false, false
		}
		if k == unknown {
			return 0, 0, false, true
		}
		switch begins, more := r.structural(at, rest); {
		case more && !force:
			r.seek = at
			return 0, 0, false, false
		case begins: // its end tag is missing
			r.whole = false
			return from + len(bytes.TrimRight(r.view[from:at], " \t\r\n")), at, true, true
		}
		i = at + 1
	}
}

// isEndTag reports whether b begins with the end tag of name, or may do so
// with more bytes.
func isEndTag(b []byte, name string) (is, more bool) {
	if n := len(name) + 3; len(b) >= n {
		return b[1] == '/' && b[n-1] == '>' && string(b[2:n-1]) == name, false
	}
	tag := "</" + name + ">"
	return false, string(b) == tag[:len(b)]
}

// structural reports whether the '<' that rest begins with, at this place of
// the buffer, is of the document's own structure rather than of a text that was
// not escaped: it begins a line with an element that reports have, or it is the
// beginning or end of a document.
func (r *Reader) structural(at int, rest []byte) (is, more bool) {
	for _, tag := range []string{"<?xml", "</" + document + ">"} {
		if n := min(len(tag), len(rest)); string(rest[:n]) == tag[:n] {
			return n == len(tag), n < len(tag)
		}
	}
	i := at - 1
	for i >= 0 && (r.view[i] == ' ' || r.view[i] == '\t') {
		i--
	}
	if i >= 0 && r.view[i] != '\n' {
		return false, false
	}
	name := bytes.TrimPrefix(rest[1:], []byte("/"))
	end := 0
	for end < len(name) && isName(name[end]) {
		end++
	}
	switch {
	case end > maxName:
		return false, false
	case end == len(name):
		return false, true
	case name[end] != '>':
		return false, false
	}
	_, k := known(name[:end])
	return k != unknown, false
}

// A mark is what ends something that may hold anything else.
type mark int

const (
	userEnd    mark = iota
	userBehind      // with what follows it
	instructionEnd
	commentEnd
	cdataEnd
	errorBegin // an error, which stands at the beginning of a line
)

var marks = [...]string{userEnd: "</usercomment>", userBehind: "</usercomment>", instructionEnd: "?>", commentEnd: "-->", cdataEnd: "]]>", errorBegin: "\n<error>"}

const cdataBegin = "<![CDATA["

// find returns where the mark stands in the view, at from or behind; -1 if
// nowhere. Where it was not found before, it is not looked for again.
func (r *Reader) find(m mark, from int) int {
	start := max(from, r.none[m])
	if start < len(r.view) {
		if i := bytes.Index(r.view[start:], []byte(marks[m])); i >= 0 {
			r.work += i
			return start + i
		}
		r.work += len(r.view) - start
	}
	r.none[m] = max(r.none[m], len(r.view)-len(marks[m])+1)
	return -1
}

// nextError returns where the next error begins, at from or behind; -1 if
// nowhere in the view.
func (r *Reader) nextError(from int) int {
	if r.next <= from {
		r.next = r.find(errorBegin, from) + 1
	}
	return r.next - 1
}

// userEnd finds the end of --xml-user-comment, which may hold anything: it
// ends where the next part of the report follows, or else with the first end
// tag. Without ok, next is negative where it may be yet to come; otherwise
// there is none.
func (r *Reader) userEnd(from int, force bool) (end, next int, ok bool) {
	size := len(marks[userEnd])
	for i := from; ; {
		if i = r.find(userBehind, i); i < 0 {
			break
		}
		is, more := r.isPart(i + size)
		if more && !force {
			return 0, -1, false
		}
		if is {
			return i, i + size, true
		}
		i++
		r.none[userBehind] = i
	}
	if !force {
		return 0, -1, false
	}
	if end = r.find(userEnd, from); end < 0 {
		return 0, 0, false
	}
	return end, end + size, true
}

// isPart reports whether the next in the view from i on is an element that a
// document has, or its end; more, that more bytes have to say so.
func (r *Reader) isPart(i int) (is, more bool) {
	for i < len(r.view) && r.view[i] <= ' ' {
		i++
	}
	if i == len(r.view) {
		return false, true
	}
	if r.view[i] != '<' {
		return false, false
	}
	behind := 1
	if i+1 < len(r.view) && r.view[i+1] == '/' {
		behind = 2
	}
	name, n, ok := r.name(i, behind)
	if !ok {
		return false, n == 0
	}
	_, k := known(name)
	return k == topLevel && (behind == 1 || string(name) == document), false
}

// rawEnd finds the end of a text of CDATA sections. Without ok, next is
// negative where it may be yet to come; otherwise there are no such sections.
func (r *Reader) rawEnd(from int, force bool) (end, next int, ok bool) {
	for i := from; ; {
		for i < len(r.view) && r.view[i] <= ' ' {
			i++
		}
		b := r.view[i:]
		if len(b) < len("</rawtext>") && !force {
			return 0, -1, false
		}
		if bytes.HasPrefix(b, []byte("</rawtext>")) {
			return i, i + len("</rawtext>"), i > from
		}
		if !bytes.HasPrefix(b, []byte(cdataBegin)) {
			return 0, 0, false
		}
		j := r.find(cdataEnd, i)
		if j < 0 {
			if force {
				return 0, 0, false
			}
			return 0, -1, false
		}
		i = j + len(marks[cdataEnd])
	}
}

// appendSections appends what is in the CDATA sections of b, without the line
// ends around it.
func appendSections(dst, b []byte) []byte {
	start := len(dst)
	for {
		i := bytes.Index(b, []byte(cdataBegin))
		if i < 0 {
			break
		}
		b = b[i+len(cdataBegin):]
		j := bytes.Index(b, []byte(marks[cdataEnd]))
		if j < 0 {
			j = len(b)
		}
		dst = append(dst, b[:j]...)
		b = b[min(len(b), j+len(marks[cdataEnd])):]
	}
	text := bytes.Trim(dst[start:], "\r\n")
	return dst[:start+copy(dst[start:], text)]
}

// appendDecoded appends b with the entities of XML decoded. What is none stays.
func appendDecoded(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '&')
		if i < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:i]...)
		b = b[i:]
		end := bytes.IndexByte(b[:min(len(b), 12)], ';')
		n := len(dst)
		if end > 0 {
			dst = appendEntity(dst, string(b[1:end]))
		}
		if len(dst) == n {
			dst = append(dst, '&')
			b = b[1:]
		} else {
			b = b[end+1:]
		}
	}
}

func appendEntity(dst []byte, name string) []byte {
	switch name {
	case "lt":
		return append(dst, '<')
	case "gt":
		return append(dst, '>')
	case "amp":
		return append(dst, '&')
	case "quot":
		return append(dst, '"')
	case "apos":
		return append(dst, '\'')
	}
	if len(name) < 2 || name[0] != '#' {
		return dst
	}
	n, ok := uint64(0), false
	if name[1] == 'x' {
		n, ok = report.Hex([]byte(name[2:]))
	} else {
		n, ok = number([]byte(name[1:]))
	}
	if !ok || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return dst
	}
	return utf8.AppendRune(dst, rune(n))
}
