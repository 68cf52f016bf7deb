package valgrind

import "bytes"

// A lexer holds the bytes that are not passed on yet, and finds the end of the token at its
// position. If a result depends on bytes that are not written yet, the lexer sets short, and the
// caller must ignore the result.
type lexer struct {
	buf  []byte
	pos  int // index in buf of the next token, or of the blanks before it
	word int // index in buf: only blanks are between pos and word
	seek int // index in buf: the token at pos does not end before it

	view  []byte // prefix of buf that the token at pos may reach
	final bool   // no bytes follow the view
	short bool   // the token at pos needs bytes beyond the view

	none [len(marks)]gap // by mark: a range of buf without the mark
	// from: start of the current text; to: end of the last complete CDATA section found in it;
	// empty without such a section
	sections gap

	lines int // line ends in the blanks between two records, so far

	next int // 1 + index in buf of the first error after the last search's start; 0 if unknown

	work int // bytes examined or moved; a test compares this with the bytes written
}

// add appends p to the buffer. The bytes before keep were passed on. add drops them if the buffer
// has no other bytes. It also drops them if the buffer would have to grow and they are at least
// half of it. moved is the number of dropped bytes, by which all positions become smaller.
func (l *lexer) add(p []byte, keep int) (moved int) {
	if stays := len(l.buf) - keep; keep > 0 && (stays == 0 || len(l.buf)+len(p) > cap(l.buf) && keep >= stays) {
		l.buf = l.buf[:copy(l.buf, l.buf[keep:])]
		l.work += stays
		moved = keep
		l.pos -= moved
		for _, at := range []*int{&l.seek, &l.word, &l.next} {
			*at = max(0, *at-moved)
		}
		for m := range l.none {
			g := &l.none[m]
			g.from, g.to = max(0, g.from-moved), max(0, g.to-moved)
		}
		if g := &l.sections; g.from >= moved {
			g.from, g.to = g.from-moved, g.to-moved
		} else {
			*g = gap{}
		}
	}
	l.buf = append(l.buf, p...)
	return moved
}

func (l *lexer) advance(to int) { l.pos, l.seek = to, to }

// lookAt sets the view to the bytes that a token at the given index may reach.
func (l *lexer) lookAt(at int, final bool) {
	l.view = l.buf[:min(len(l.buf), at+maxLeaf)]
	l.final = final && len(l.view) == len(l.buf) || len(l.view) == at+maxLeaf
	l.short = false
}

// needsMore is called if a result depends on the byte after the view. It sets short and returns
// true if that byte may still follow.
func (l *lexer) needsMore() bool {
	l.short = l.short || !l.final
	return !l.final
}

// skipBlanks returns the range of the blanks that no earlier call has skipped. Within a record, NUL
// is a blank too, and skipBlanks moves the position past the blanks.
func (l *lexer) skipBlanks(inRecord bool) (from, end int) {
	from = max(l.pos, l.word)
	end = from
	for end < len(l.buf) && l.buf[end] <= ' ' && (inRecord || l.buf[end] != 0) {
		end++
	}
	l.work += end - from
	l.word = end
	if inRecord {
		l.pos = end
	} else {
		l.lines += bytes.Count(l.buf[from:end], lineEnd)
	}
	return from, end
}

var lineEnd = []byte{'\n'}

// takeLines returns and resets the number of line ends since the preceding record.
func (l *lexer) takeLines() (n int) {
	n, l.lines = l.lines, 0
	return n
}

// blanksBefore returns the blanks directly before a record in its line, at most maxIndent
// bytes.
func (l *lexer) blanksBefore(at int) []byte {
	from := at
	for from > max(0, at-maxIndent) && (l.buf[from-1] == ' ' || l.buf[from-1] == '\t') {
		from--
	}
	return l.buf[from:at]
}

// dropLines moves the position past the last line end in the blanks between from and end. The
// blanks after that line end may begin a line of text. dropLines skips them too if final is set, or
// if they take more than maxLeaf bytes.
func (l *lexer) dropLines(from, end int, final bool) {
	if nl := bytes.LastIndexByte(l.buf[from:end], '\n'); nl >= 0 {
		l.pos = from + nl + 1
	}
	if final || end-l.pos > maxLeaf {
		l.pos = end
	}
}

func (l *lexer) endOfZeros(from int) (end int) {
	for end = from; end < len(l.buf) && l.buf[end] == 0; end++ {
	}
	l.work += end - from
	l.word = end
	return end
}

// textEnd returns the end of a text between elements: the next tag. Outside records, the end of
// the line ends the text too.
func (l *lexer) textEnd(inRecord bool) (end int) {
	ends := "<\n"
	if inRecord {
		ends = "<"
	}
	from := max(l.seek, l.word)
	for end = from; end < len(l.view); end++ {
		i := bytes.IndexAny(l.view[end:], ends)
		if i < 0 {
			end = len(l.view)
			break
		}
		end += i
		if l.view[end] == '\n' || l.isTag(end) || l.short {
			break
		}
	}
	l.work += end - from
	l.seek = end
	if end == len(l.view) {
		l.needsMore()
	}
	return end
}

// isTag reports whether the '<' at the given index begins a tag. At the end of the report, the
// beginning of a possible tag counts as a tag.
func (l *lexer) isTag(at int) bool {
	if at+1 == len(l.view) {
		l.needsMore()
		return true
	}
	nameAt := 1
	switch l.view[at+1] {
	case '?', '!':
		return true
	case '/':
		nameAt = 2
	}
	_, size, ok := l.tagName(at, nameAt)
	return ok || size == 0
}

// tagName returns the name of the tag at the given index, and the tag's size with attributes. The
// name begins nameAt bytes after the index. If ok is false, the '<' begins no tag, or, with size 0,
// the view ends too early to decide.
func (l *lexer) tagName(at, nameAt int) (name []byte, size int, ok bool) {
	b := l.view[at:]
	i := nameAt
	for i < len(b) && i <= nameAt+maxName && isName(b[i]) {
		i++
	}
	switch {
	case i > nameAt && !isLetter(b[nameAt]), i > nameAt+maxName:
		return nil, 1, false
	case i >= len(b):
		l.needsMore()
		return nil, 0, false
	case i == nameAt:
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
			l.needsMore()
			return nil, 0, false
		case gt < 0 || b[end+gt] == '<':
			return nil, 1, false
		}
		end += gt
	}
	return b[nameAt:i], end + 1, true
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || c == '_' }

func isName(c byte) bool {
	return isLetter(c) || '0' <= c && c <= '9' || c == '-' || c == '.' || c == ':'
}

func (l *lexer) has(at int, text string) bool {
	b := l.view[at:min(len(l.view), at+len(text))]
	if len(b) < len(text) && string(b) == text[:len(b)] {
		l.needsMore()
		return false
	}
	return string(b) == text
}

// A mark is a text that the lexer searches for.
type mark int

const (
	userEnd        mark = iota
	userEndAndPart      // like userEnd, but only before a part of the report
	instructionEnd
	commentEnd
	cdataEnd
	errorBegin // an error at the beginning of a line
)

var marks = [...]string{
	userEnd: "</usercomment>", userEndAndPart: "</usercomment>", instructionEnd: "?>", commentEnd: "-->", cdataEnd: "]]>",
	errorBegin: "\n<error>",
}

const cdataBegin = "<![CDATA["

// A gap is a range of buf that need not be searched again.
type gap struct{ from, to int }

// find returns the index of the first mark at or after from in the view, or -1. It does not search
// a range again in which an earlier search found no mark.
func (l *lexer) find(m mark, from int) int {
	g := &l.none[m]
	if from < g.from || from > g.to {
		*g = gap{from, from} // nothing is known about the bytes between
	}
	start := max(from, g.to)
	if start < len(l.view) {
		if i := bytes.Index(l.view[start:], []byte(marks[m])); i >= 0 {
			l.work += i
			return start + i
		}
		l.work += len(l.view) - start
	}
	g.to = max(g.to, len(l.view)-len(marks[m])+1)
	return -1
}

// nextError returns the index of the first error at or after from, or -1.
func (l *lexer) nextError(from int) int {
	if l.next <= from {
		l.next = l.find(errorBegin, from) + 1
	}
	return l.next - 1
}
