package layout

import (
	"encoding/binary"
	"strconv"
	"strings"
)

// UnknownFunction is printed for a function without a known name.
const UnknownFunction = "??"

// A Frame holds the printable texts of one frame.
type Frame struct {
	// name of the function, with an offset (+0x12) if the frame has no line; "??" if unknown
	Name   string
	File   string // empty if the frame has no line
	Line   string // decimal
	Column string // decimal; empty if unknown
	Link   string // URL of the line; empty if there is none

	Inlined bool // the function is inlined into the next frame
}

// Function returns the function's name without the offset.
func (t *Frame) Function() string {
	if t.File == "" {
		if i := strings.LastIndex(t.Name, "+0x"); i > 0 {
			return t.Name[:i]
		}
	}
	return t.Name
}

// decimal returns the function's name, with a decimal offset if it has one.
func (t *Frame) decimal() string {
	name := t.Function()
	if len(name) == len(t.Name) {
		return name
	}
	n, err := strconv.ParseUint(t.Name[len(name)+len("+0x"):], 16, 64)
	if err != nil {
		return t.Name
	}
	return name + "+" + strconv.FormatUint(n, 10)
}

// spaced returns the function's name, with blanks around the "+" of the offset.
func (t *Frame) spaced() string {
	name := t.Function()
	if distance := t.Name[len(name):]; distance != "" {
		return name + " + " + distance[len("+"):]
	}
	return name
}

// bareFunction removes the prefix of a sanitizer's interceptor from name, as sanitizers do.
func bareFunction(name string) string {
	if !strings.HasPrefix(name, "__") {
		return name
	}
	for _, prefix := range []string{"___interceptor_", "__interceptor_trampoline_", "__interceptor_"} {
		if bare, ok := strings.CutPrefix(name, prefix); ok {
			return bare
		}
	}
	return name
}

// FunctionAndLine appends a function with its file, line and column, as FUNCTION FILE:LINE:COLUMN.
func (l *Line) FunctionAndLine(t Frame) {
	l.Display.Breakable(len(l.Buf))
	l.Function(t.Name)
	if t.File != "" {
		l.Display.Breakable(len(l.Buf))
		l.Dim(" ")
		l.FileLine(&t, t.File, ":", true)
	}
}

// Address appends a code address between blanks.
func (l *Line) Address(addr uint64) {
	var b [20]byte
	putAddress(b[:], addr)
	l.Dim(string(b[:]))
}

// AppendHead appends the start of a frame's line, without colours: the number, padded to four
// digits, the depth of an inlined call, and the address. depth is 0 for the frame itself.
// AppendHead avoids general formatting, because a log may have millions of frames.
func AppendHead(dst []byte, number uint64, depth int, addr uint64) []byte {
	var b [32]byte
	h := append(b[:0], "    #"[digits(number)-1:]...)
	h = AppendSmall(h, number)
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

// AppendSmall appends n in decimal. It is fast for one digit.
func AppendSmall(dst []byte, n uint64) []byte {
	if n < 10 {
		return append(dst, '0'+byte(n))
	}
	return strconv.AppendUint(dst, n, 10)
}

// putAddress fills the 20 bytes of b with an address between blanks.
func putAddress(b []byte, addr uint64) {
	_ = b[19]
	b[0], b[1], b[2], b[19] = ' ', '0', 'x', ' '
	binary.BigEndian.PutUint64(b[3:], HexDigits(uint32(addr>>32)))
	binary.BigEndian.PutUint64(b[11:], HexDigits(uint32(addr)))
}

// HexDigits returns v as eight hexadecimal digits, in the bytes of a big-endian word. It computes
// all digits at once for speed: each frame has an address of sixteen digits.
func HexDigits(v uint32) uint64 {
	x := uint64(v)
	x = (x<<16 | x) & 0x0000ffff0000ffff
	x = (x<<8 | x) & 0x00ff00ff00ff00ff
	x = (x<<4 | x) & 0x0f0f0f0f0f0f0f0f // one digit in each byte
	letters := (x + 0x0606060606060606) >> 4 & 0x0101010101010101
	return x + 0x3030303030303030 + letters*('a'-'0'-10)
}
