package layout

import (
	"bytes"
	"unicode"
	"unicode/utf8"

	"github.com/symfilter/symfilter/sgr"
)

// tabStop is the distance between tab stops on terminals, in columns.
const tabStop = 8

// spaces provides the blanks of an indentation. Its length is the largest indentation.
const spaces = "                                                                "

// breakLine breaks the current line of output, buf[k.start:], at marked offsets if it is wider than
// the terminal. The terminal itself wraps a part that is wider than a whole line.
func (k *Display) breakLine(buf []byte) []byte {
	if n, _ := columns(buf[k.start:], 0); n <= k.Width {
		return buf
	}
	b := breaker{width: k.Width}
	if k.frame >= 0 {
		b.indent, _ = columns(buf[k.start:k.frame], 0)
	}
	b.indent = min(b.indent+k.indent, k.Width/4, len(spaces))
	old := append(k.scratch[:0], buf[k.start:]...)
	k.scratch = old
	b.dst = buf[:k.start]
	b.start = k.start
	at, kind := 0, logText
	for i := 0; ; {
		from := i
		for i < len(k.breaks) && k.breaks[i].kind >= namePart {
			i++
		}
		points := k.breaks[from:i]
		if i == len(k.breaks) {
			b.add(old[at:], kind, points, k.start+at)
			return b.dst
		}
		end := k.breaks[i].at - k.start
		b.add(old[at:end], kind, points, k.start+at)
		at, kind = end, k.breaks[i].kind
		i++
	}
}

// A breaker adds the parts of a line to dst. It adds a line end before each part that does not fit.
type breaker struct {
	dst    []byte
	start  int // offset of the line in dst
	width  int // columns
	indent int // columns to the left of the lines after the first
	col    int // the current column
	state  sgr.State
}

// add adds a part of a line. A part that is wider than a whole line is broken at points: first at
// the start of the arguments, then at commas. points and base, the start of the part, are offsets
// in the whole text.
func (b *breaker) add(part []byte, kind breakKind, points []breakPoint, base int) {
	next, visible := columns(part, b.col)
	if kind == logText || next <= b.width || !visible {
		b.append(part, next)
		return
	}
	if bare := withoutBlank(part); b.col > b.indent && b.fits(bare) {
		b.breakBefore(bare)
		return
	}
	level := commaPart
	for _, p := range points {
		level = min(level, p.kind)
	}
	if len(points) == 0 {
		b.append(part, next)
		return
	}
	at, first := 0, 0 // part[:at] and points[:first] were added
	for i := 0; i <= len(points); i++ {
		if i < len(points) && points[i].kind != level {
			continue
		}
		end := len(part)
		if i < len(points) {
			end = points[i].at - base
		}
		b.add(part[at:end], level, points[first:i], base+at)
		at, first = end, i+1
	}
}

// fits reports whether part fits on a separate line.
func (b *breaker) fits(part []byte) bool {
	n, _ := columns(part, 0)
	return n <= b.width
}

// breakBefore starts a new line and adds part, which must fit on a separate line. Colours end with
// the old line and restart on the new one: pagers show a line without the lines before it.
func (b *breaker) breakBefore(part []byte) {
	n, _ := columns(part, 0)
	in := min(b.indent, b.width-n)
	shown := len(bytes.TrimRight(b.dst[b.start:], " "))
	b.dst = sgr.AppendTransition(b.dst[:b.start+shown], b.state, sgr.State{})
	b.dst = append(append(b.dst, newline...), spaces[:in]...)
	if !bytes.HasPrefix(part, []byte("\x1b[0")) { // a reset would end restored colours at once
		b.dst = sgr.AppendTransition(b.dst, sgr.State{}, b.state)
	}
	b.append(part, in+n)
}

// append adds part, which ends in column col.
func (b *breaker) append(part []byte, col int) {
	b.dst = append(b.dst, part...)
	for at := bytes.IndexByte(part, esc); at >= 0; {
		n := sequence(part[at:])
		b.state = b.state.Apply(part[at : at+n])
		next := bytes.IndexByte(part[at+n:], esc)
		if next < 0 {
			break
		}
		at += n + next
	}
	if b.col = col; col > b.width { // the terminal wraps the part
		b.col = (col-1)%b.width + 1
	}
}

// withoutBlank removes the first blank of part, which may follow colour sequences.
func withoutBlank(part []byte) []byte {
	at := 0
	for at < len(part) && part[at] == esc {
		at += sequence(part[at:])
	}
	if at < len(part) && part[at] == ' ' {
		return append(part[:at:at], part[at+1:]...)
	}
	return part
}

// columns returns the column after text that begins in column col, and whether a terminal shows any
// of it. Columns count from 0.
func columns(text []byte, col int) (end int, visible bool) {
	for i := 0; i < len(text); {
		c := text[i]
		switch {
		case c >= ' ' && c < 0x7f:
			col++
			i++
			visible = true
		case c == '\t':
			col += tabStop - col%tabStop
			i++
		case c == esc:
			i += sequence(text[i:])
		case c < utf8.RuneSelf:
			i++
		default:
			r, n := utf8.DecodeRune(text[i:])
			col += runeWidth(r)
			i += n
			visible = true
		}
	}
	return col, visible
}

// maxLink bounds the search for the end of a link, in bytes: a line with many starts of links then
// takes linear time. Links of answers have URLs of at most 2,000 bytes.
const maxLink = 4 << 10

// sequence returns the length of the escape sequence at the start of b: ESC [ with its parameters
// and final byte, such as a colour, or a link (ESC ] ... ESC \). For any other or unfinished
// sequence, it returns 1, the length of ESC.
func sequence(b []byte) int {
	if len(b) < 2 {
		return 1
	}
	switch b[1] {
	case '[':
		for i := 2; i < len(b); i++ {
			if c := b[i]; c >= 0x40 && c <= 0x7e {
				return i + 1
			} else if c < ' ' || c > 0x7e {
				return 1
			}
		}
	case ']':
		if i := bytes.Index(b[:min(len(b), maxLink)], []byte("\x1b\\")); i >= 0 {
			return i + 2
		}
	}
	return 1
}

// runeWidth returns the number of columns of a printable rune on terminals. The wide ranges are
// from Unicode's East Asian Width, without rare ones.
func runeWidth(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf && r != 0x303f, r >= 0xac00 && r <= 0xd7a3,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6,
		r >= 0x1f300 && r <= 0x1f64f, r >= 0x1f900 && r <= 0x1f9ff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
