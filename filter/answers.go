package filter

import (
	"encoding/binary"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/markup"
)

// frameIndent is the distance from the text of a frame, which begins with four blanks, to its
// address. A frame that does not fit into its line is continued there.
const frameIndent = len("    #0.1 ")

// frame lays out the i-th frame of the answer for e as in a backtrace line:
//
//	#0.1  0x… ns::inner(int) /src/a.cpp:7:65 (a.out+0x1196)
//	#0    0x… int ns::Foo::run<int>(int) /src/a.cpp:9:73 (a.out+0x1196)
func (l *layout) frame(e *frameFields, a *answer, i int) {
	number, addr := e.number, e.shownAddr(a)
	inlined := a.hasText && i < len(a.text.cuts)-1
	if l.quick && a.hasText && number <= 9999 {
		depth := 0
		if inlined {
			depth = i + 1
		}
		l.buf = appendHead(l.buf, number, depth, addr)
		l.buf = append(l.buf, a.text.tail(i)...)
		return
	}
	var n [20]byte
	digits := strconv.AppendUint(n[:0], number, 10)
	l.mark("    #"[min(len(digits), 5)-1:])
	l.mark(string(digits))
	if inlined {
		l.mark(".")
		depth := strconv.AppendUint(n[:0], uint64(i+1), 10)
		if len(depth) < 2 {
			depth = append(depth, ' ')
		}
		l.mark(string(depth))
	} else {
		l.mark("   ")
	}
	if e.empty(a) {
		l.mark(" " + noAddress)
		return
	}
	l.address(addr)
	switch {
	case a.mod == nil:
		l.unresolved("(no module)")
	case !a.hasText:
		l.unknown("(", a, ")")
	default:
		l.functionAndLine(a.text.frame(i))
		l.place(a)
	}
}

// address lays out a code address between blanks.
func (l *layout) address(addr uint64) {
	var b [20]byte
	putAddress(b[:], addr)
	l.dim(string(b[:]))
}

// functionAndLine lays out a function with its file, line and column, as FUNCTION FILE:LINE:COLUMN.
func (l *layout) functionAndLine(t frameText) {
	l.look.Breakable(len(l.buf))
	l.function(t.name)
	if t.file != "" {
		l.look.Breakable(len(l.buf))
		l.dim(" ")
		l.source(&t, t.file, ":", true)
	}
}

// place lays out the module and the address in it of an answer that has a name, as
// (module+0x1196) after a blank.
func (l *layout) place(a *answer) {
	l.look.Breakable(len(l.buf))
	l.dim(" (")
	l.buf = append(appendPlace(l.buf, a.mod, a.rel), ')')
}

// unknown lays out the module and the address in it of an answer without a name, between before and
// after, and the module's build ID, by which another tool can find its debug file.
func (l *layout) unknown(before string, a *answer, after string) {
	l.look.Breakable(len(l.buf))
	l.unresolved(before)
	l.buf = append(appendPlace(l.buf, a.mod, a.rel), after...)
	l.look.Breakable(len(l.buf))
	l.unresolved(" (BuildId: ")
	l.buf = append(append(l.buf, a.mod.buildID().String()...), ')')
}

// frameInSentence lays out the answer for e, which is in a sentence:
//
//	#0 ns::inner(int) /src/a.cpp:7:65 (a.out+0x1196) inlined into …
func (l *layout) frameInSentence(e *frameFields, a *answer) {
	if e.empty(a) {
		l.mark(noAddress)
		return
	}
	l.mark("#")
	l.mark(strconv.FormatUint(e.number, 10))
	l.mark(" ")
	if !a.hasText {
		l.dim("0x" + strconv.FormatUint(e.shownAddr(a), 16))
		if a.mod == nil {
			l.unresolved(" (no module)")
			return
		}
		l.unknown(" (", a, ")")
		return
	}
	for i := range a.text.cuts {
		if i > 0 {
			l.look.Breakable(len(l.buf))
			l.dim(" inlined into ")
		}
		l.functionAndLine(a.text.frame(i))
		if i == 0 {
			l.place(a)
		}
	}
}

// noAddress is the answer for an empty frame.
const noAddress = "(no address)"

// message lays out the message of a backtrace element after its frame.
func (l *layout) message(message []byte) {
	if len(message) > 0 { // checked apart so that the check is inlined: few frames have one
		l.someMessage(message)
	}
}

func (l *layout) someMessage(message []byte) {
	l.mark(" ")
	l.value(escape.Clean(string(message)))
}

// codeLocation lays out the answer for a pc element:
//
//	ns::inner(int)[/src/a.cpp:7] inlined into int ns::Foo::run<int>(int)[/src/a.cpp:9]
func (l *layout) codeLocation(a *answer) {
	if !a.hasText {
		l.unknown("", a, "")
		return
	}
	l.functionsAndLines(a, "[", "]")
}

// variable lays out the answer for a data address: table[3].refs, name+0x18.
func (l *layout) variable(a *answer, p *piece) {
	switch {
	case a.mod == nil:
		l.bracketedElement(p)
	case !a.hasText:
		l.unknown("", a, "")
	default:
		l.function(a.text.data())
	}
}

// rawElement lays out an element as it is in the log.
func (l *layout) rawElement(p *piece) {
	raw := p.Raw
	if p.elem != nil {
		raw = p.appendRaw(nil)
	}
	l.logToken(&markup.Token{Raw: raw[:len(markupOpen)]})
	l.logBytes(raw[len(markupOpen):]) // not an element without its braces: colours in it are found
}

// bracketedElement lays out an element without an answer as LLVM's filter does: [[[pc:0x1234]]].
func (l *layout) bracketedElement(p *piece) {
	raw := p.appendRaw(nil)
	l.unresolved("[[[" + escape.Clean(string(raw[3:len(raw)-3])) + "]]]")
}

// rawPieces lays out pieces as they are in the log.
func (l *layout) rawPieces(pieces []piece) {
	for i := range pieces {
		if p := &pieces[i]; p.Kind == markup.Elem {
			l.rawElement(p)
		} else {
			l.logToken(&p.Token)
		}
	}
}

// footnoteTarget lays out the answer for the value of a footnote.
func (l *layout) footnoteTarget(a *answer) {
	if a.text.data() != "" {
		l.function(a.text.data())
		return
	}
	l.functionsAndLines(a, " ", "")
}

// functionsAndLines lays out the function of each frame of an answer, with its file and line between
// before and after.
func (l *layout) functionsAndLines(a *answer, before, after string) {
	for i := range a.text.cuts {
		t := a.text.frame(i)
		if i > 0 {
			l.look.Breakable(len(l.buf))
			l.dim(" inlined into ")
		}
		l.look.Breakable(len(l.buf))
		l.function(t.name)
		if t.file != "" {
			l.look.Breakable(len(l.buf))
			l.dim(before)
			l.source(&t, t.file, ":", false)
			if after != "" {
				l.dim(after)
			}
		}
	}
}

// appendHead appends the part of a frame before the answer: its number, of at most four digits, the
// depth of an inlined call, 0 for the frame itself, and the address. It is the fast path of frame,
// without colour, because a log may have millions of frames.
func appendHead(dst []byte, number uint64, depth int, addr uint64) []byte {
	var b [32]byte
	h := append(b[:0], "    #"[digits(number)-1:]...)
	h = appendSmall(h, number)
	switch {
	case depth == 0:
		h = append(h, "   "...)
	case depth < 10:
		h = append(h, '.', '0'+byte(depth), ' ')
	default:
		h = strconv.AppendUint(append(h, '.'), uint64(depth), 10)
	}
	n := len(h)
	h = h[:n+20]
	putAddress(h[n:], addr)
	return append(dst, h...)
}

func digits(n uint64) int {
	switch {
	case n < 10:
		return 1
	case n < 100:
		return 2
	case n < 1000:
		return 3
	}
	return 4
}

func appendSmall(dst []byte, n uint64) []byte {
	if n < 10 {
		return append(dst, '0'+byte(n))
	}
	return strconv.AppendUint(dst, n, 10)
}

// putAddress fills the 20 bytes of b with an address between blanks.
func putAddress(b []byte, addr uint64) {
	_ = b[19]
	b[0], b[1], b[2], b[19] = ' ', '0', 'x', ' '
	binary.BigEndian.PutUint64(b[3:], hexDigits(uint32(addr>>32)))
	binary.BigEndian.PutUint64(b[11:], hexDigits(uint32(addr)))
}

// hexDigits returns the eight digits of v as the bytes of a big-endian word. It makes all at once,
// because every frame has sixteen digits.
func hexDigits(v uint32) uint64 {
	x := uint64(v)
	x = (x<<16 | x) & 0x0000ffff0000ffff
	x = (x<<8 | x) & 0x00ff00ff00ff00ff
	x = (x<<4 | x) & 0x0f0f0f0f0f0f0f0f // one digit a byte
	letters := (x + 0x0606060606060606) >> 4 & 0x0101010101010101
	return x + 0x3030303030303030 + letters*('a'-'0'-10)
}
