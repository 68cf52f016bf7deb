package valgrind

import "bytes"

// A leafText describes where the text of an element ends.
type leafText struct {
	end, next int  // ends of the text and of the end tag
	isLeaf    bool // the element contains only text
	isCut     bool // the end tag is missing
}

const versionTag = "<protocolversion>"

// leafAt finds the end of the text that begins at from, in an element with this name and kind. If
// another element begins in the text, isLeaf of the result is false.
func (l *lexer) leafAt(name string, k kind, from int) (t leafText) {
	switch name {
	case "usercomment":
		if t = l.userCommentAt(from); t.isLeaf || l.short {
			return t
		}
	case "rawtext":
		if t = l.sectionsAt(from); t.isLeaf || l.short {
			return t
		}
	case "threadname":
		window := l.view[from:min(len(l.view), from+threadName)]
		if len(window) < threadName && l.needsMore() {
			return t
		}
		if i := bytes.LastIndex(window, []byte("</threadname>")); i >= 0 {
			return leafText{end: from + i, next: from + i + len("</threadname>"), isLeaf: true}
		}
	}
	for i := max(from, l.seek); ; i++ {
		lt := bytes.IndexByte(l.view[i:], '<')
		if lt < 0 {
			l.work += len(l.view) - i
			l.seek = len(l.view)
			if l.needsMore() {
				return t
			}
			return l.cutLeaf(name, from)
		}
		l.work += lt
		i += lt
		switch {
		case l.isEndTag(i, name):
			return leafText{end: i, next: i + len(name) + 3, isLeaf: true}
		// a second start tag ends the element: Valgrind's documentation omits the end tag
		case name == "protocolversion" && !l.short && l.has(i, versionTag):
			return leafText{end: i, next: i + len(versionTag), isLeaf: true}
		case k == unknown && !l.short:
			return t
		case !l.short && l.isStructure(i): // its end tag is missing
			end := from + len(bytes.TrimRight(l.view[from:i], " \t\r\n"))
			return leafText{end: end, next: i, isLeaf: true, isCut: true}
		case l.short:
			l.seek = i
			return t
		}
	}
}

// cutLeaf returns the text of an element that the end of the view cuts off. If the beginning of the
// end tag is there, the text ends before it. If two or more bytes of the end tag are there, the
// text is whole.
func (l *lexer) cutLeaf(name string, from int) leafText {
	end := len(l.view)
	for n := min(len(name)+2, end-from); n > 0; n-- {
		if string(l.view[end-n:]) == ("</" + name + ">")[:n] {
			return leafText{end: end - n, next: end, isLeaf: true, isCut: n == 1}
		}
	}
	return leafText{end: end, next: end, isLeaf: true, isCut: true}
}

// isEndTag reports whether the end tag of an element called name is at the given index.
func (l *lexer) isEndTag(at int, name string) bool {
	b := l.view[at:]
	if n := len(name) + 3; len(b) >= n {
		return b[1] == '/' && b[n-1] == '>' && string(b[2:n-1]) == name
	}
	return l.has(at, "</"+name+">")
}

// isStructure reports whether the '<' at the given index begins a tag, not unescaped text. Tags
// are <?xml, </valgrindoutput>, and known elements at the beginning of a line.
func (l *lexer) isStructure(at int) bool {
	for _, tag := range []string{"<?xml", "</" + document + ">"} {
		if l.has(at, tag) {
			return true
		}
		if l.short {
			return false
		}
	}
	i := at - 1
	for i >= 0 && (l.view[i] == ' ' || l.view[i] == '\t') {
		i--
	}
	if i >= 0 && l.view[i] != '\n' {
		return false
	}
	name := bytes.TrimPrefix(l.view[at+1:], []byte("/"))
	end := 0
	for end < len(name) && isName(name[end]) {
		end++
	}
	switch {
	case end > maxName:
		return false
	case end == len(name):
		l.needsMore()
		return false
	case name[end] != '>':
		return false
	}
	_, k := elementNamed(name[:end])
	return k != unknown
}

// userCommentAt finds the end of the text of --xml-user-comment, which may contain anything, even
// end tags. The text ends at the first end tag that another part of the report follows. If there is
// none, it ends at the first end tag.
func (l *lexer) userCommentAt(from int) (t leafText) {
	size := len(marks[userEnd])
	for {
		i := l.find(userEndAndPart, from)
		if i < 0 {
			break
		}
		switch {
		case l.isPart(i + size):
			return leafText{end: i, next: i + size, isLeaf: true}
		case l.short:
			return t
		}
		l.none[userEndAndPart].to = i + 1 // no part follows that tag
	}
	if l.needsMore() {
		return t
	}
	if end := l.find(userEnd, from); end >= 0 {
		return leafText{end: end, next: end + size, isLeaf: true}
	}
	return t
}

// isPart reports whether a part of the report follows the blanks at i. A part is an element
// that begins a record, or the end tag of the document.
func (l *lexer) isPart(i int) bool {
	for i < len(l.view) && l.view[i] <= ' ' {
		i++
	}
	if i == len(l.view) {
		l.needsMore()
		return false
	}
	if l.view[i] != '<' {
		return false
	}
	nameAt := 1
	if i+1 < len(l.view) && l.view[i+1] == '/' {
		nameAt = 2
	}
	name, _, ok := l.tagName(i, nameAt)
	if !ok {
		return false
	}
	_, k := elementNamed(name)
	return k == topLevel && (nameAt == 1 || string(name) == document)
}

// sectionsAt finds the end of a text that consists only of CDATA sections and blanks.
func (l *lexer) sectionsAt(from int) (t leafText) {
	const tag = "</rawtext>"
	i := from
	if l.sections.from == from {
		i = max(i, l.sections.to)
	}
	for {
		for i < len(l.view) && l.view[i] <= ' ' {
			i++
		}
		b := l.view[i:]
		if len(b) < len(tag) && l.needsMore() {
			return t
		}
		if bytes.HasPrefix(b, []byte(tag)) {
			return leafText{end: i, next: i + len(tag), isLeaf: i > from}
		}
		if !bytes.HasPrefix(b, []byte(cdataBegin)) {
			return t
		}
		end := l.find(cdataEnd, i)
		if end < 0 {
			l.needsMore()
			return t
		}
		i = end + len(marks[cdataEnd])
		l.sections = gap{from, i}
	}
}
