package html

import (
	"bytes"
	"strconv"

	"github.com/symfilter/symfilter/sgr"
)

const esc = 0x1b

// A form selects how a line is written: as HTML in an element, or as text of a chunk.
type form uint8

const (
	inElement form = iota
	inChunk
)

// appendLine appends a line, or a part of one, without its line end. Colours in text become
// classes, and end where text ends.
func appendLine(dst, text []byte, as form) []byte {
	if as.isPlain(text) {
		return append(dst, text...)
	}
	i := bytes.IndexByte(text, esc)
	if i < 0 {
		return as.append(dst, text)
	}
	var state, shown sgr.State
	for at := 0; ; {
		if i > at {
			dst = as.transition(dst, shown, state)
			shown = state
			dst = as.append(dst, text[at:i])
		}
		if i == len(text) {
			return as.transition(dst, shown, sgr.State{})
		}
		n := sequence(text[i:])
		at = i + n
		if n == 0 { // not a colour, so it becomes visible
			n = 1
			at = i
		} else {
			state = state.Apply(text[i:at])
		}
		if next := bytes.IndexByte(text[i+n:], esc); next >= 0 {
			i += n + next
		} else {
			i = len(text)
		}
	}
}

// maxSequence bounds the parameters of a colour sequence, as in package markup.
const maxSequence = 64 // bytes

// sequence returns the length of the colour sequence at the beginning of text, which starts with
// ESC, or 0.
func sequence(text []byte) int {
	if len(text) < 3 || text[1] != '[' {
		return 0
	}
	for i, c := range text[2:] {
		switch {
		case c == 'm':
			return i + 3
		case (c < '0' || c > '9') && c != ';' && c != ':' || i >= maxSequence:
			return 0
		}
	}
	return 0
}

// isPlain reports whether text is unchanged in this form, as most lines are.
func (f form) isPlain(text []byte) bool {
	if f == inChunk {
		return printable(text) == len(text)
	}
	return plain(text) == len(text)
}

func (f form) append(dst, text []byte) []byte {
	if f == inChunk {
		return appendVisible(dst, text)
	}
	return appendEscaped(dst, text)
}

// transition appends the end of the previous colour, from, and the beginning of the next colour,
// to. It appends nothing if they are equal.
func (f form) transition(dst []byte, from, to sgr.State) []byte {
	if from == to {
		return dst
	}
	if !from.IsZero() {
		if f == inChunk {
			dst = append(dst, esc, esc)
		} else {
			dst = append(dst, "</span>"...)
		}
	}
	if !to.IsZero() {
		if f == inChunk {
			dst = append(appendClasses(append(dst, esc), to), esc)
		} else {
			dst = append(appendClasses(append(dst, `<span class="`...), to), `">`...)
		}
	}
	return dst
}

// appendClasses appends the classes of a colour that is not the default.
func appendClasses(dst []byte, s sgr.State) []byte {
	begin := len(dst)
	class := func(letter byte, n int) {
		if len(dst) > begin {
			dst = append(dst, ' ')
		}
		dst = strconv.AppendInt(append(dst, letter), int64(n), 10)
	}
	for bit := range 8 {
		if s.Attrs&(1<<bit) != 0 {
			class('a', bit)
		}
	}
	if n, ok := s.Foreground.Basic(); ok {
		class('c', n)
	}
	if n, ok := s.Background.Basic(); ok {
		class('g', n)
	}
	return dst
}
