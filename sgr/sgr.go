// Package sgr folds colour control sequences into a state, and emits the sequence that leads from
// one state to another.
//
// SGR (Select Graphic Rendition) sequences have the form ESC [ parameters m. The symbolizer markup
// format (section "Colorization") defines 0, 1 and 30 to 37, one in each sequence. Real logs have
// more, so this package reads all codes of ECMA-48 and xterm for which a [State] has a field. It
// emits only sequences that every terminal reads in the same way, with only the format's codes if
// the state allows it.
//
// A program that inserts its own colours into a coloured stream keeps a State. It applies each
// sequence of the stream, and after its insertion emits the transition back:
//
//	own := state.WithForeground(sgr.Blue)
//	out = sgr.AppendTransition(out, state, own)
//	out = append(out, "inserted"...)
//	out = sgr.AppendTransition(out, own, state)
package sgr

import "strconv"

// Attr is a set of attributes other than colour.
type Attr uint8

// The attributes. Slow and rapid blinking are the same attribute, and so are all kinds of
// underline.
const (
	Bold Attr = 1 << iota
	Faint
	Italic
	Underline
	Blink
	Inverse
	Conceal
	Strike
)

// Color is a foreground or background colour. The zero value is the terminal's default.
type Color uint32

// Default is the terminal's own colour. The eight other colours have the codes 30 to 37 (40 to 47
// for a background). Bright returns their variants with the codes 90 to 97 (100 to 107).
const (
	Default Color = 0
	Black   Color = basic | iota - 1
	Red
	Green
	Yellow
	Blue
	Magenta
	Cyan
	White
)

// The upper byte of a Color selects how the lower bytes encode the colour.
const (
	basic   Color = 1 << 24 // 0-7 normal, 8-15 bright
	palette Color = 2 << 24 // 0-255, of 38;5;n
	rgb     Color = 3 << 24 // 0xrrggbb, of 38;2;r;g;b
	kind    Color = 0xff << 24

	bright = 8
)

// Bright returns the bright variant of one of the eight colours, and any other colour unchanged.
func (c Color) Bright() Color {
	if c&kind == basic {
		return c | bright
	}
	return c
}

// Indexed returns the colour n of the 256-colour palette.
func Indexed(n uint8) Color { return palette | Color(n) }

// RGB returns a 24-bit colour.
func RGB(r, g, b uint8) Color { return rgb | Color(r)<<16 | Color(g)<<8 | Color(b) }

// State is the look of text. States can be compared and copied; the zero value is the default look.
type State struct {
	Attrs                  Attr
	Foreground, Background Color
}

// IsZero reports whether s is the default look.
func (s State) IsZero() bool { return s == State{} }

// WithForeground returns s with another foreground colour. All else, bold included, is unchanged.
func (s State) WithForeground(c Color) State {
	s.Foreground = c
	return s
}

// attrCodes holds the code of each attribute, in the order of the bits.
const attrCodes = "12345789"

// AppendTransition appends one sequence that changes the look from one state to another, or nothing
// if they are equal. If an attribute ends, or a colour becomes the default, the sequence begins
// with the reset code 0: codes that end a single attribute or colour, such as 22 or 39, are not in
// the markup format.
func AppendTransition(dst []byte, from, to State) []byte {
	if from == to {
		return dst
	}
	dst = append(dst, "\x1b["...)
	must := to
	if from.Attrs&^to.Attrs != 0 || to.Foreground == Default && from.Foreground != Default || to.Background == Default && from.Background != Default {
		dst = append(dst, '0', ';')
	} else {
		must.Attrs &^= from.Attrs
		if must.Foreground == from.Foreground {
			must.Foreground = Default
		}
		if must.Background == from.Background {
			must.Background = Default
		}
	}
	for i := range len(attrCodes) {
		if must.Attrs&(1<<i) != 0 {
			dst = append(dst, attrCodes[i], ';')
		}
	}
	dst = appendColor(dst, must.Foreground, 30)
	dst = appendColor(dst, must.Background, 40)
	dst[len(dst)-1] = 'm' // replaces the last separator
	return dst
}

// appendColor appends the codes of c, each followed by a semicolon. base is 30 for the foreground
// and 40 for the background.
func appendColor(dst []byte, c Color, base int) []byte {
	code := func(n int) { dst = append(strconv.AppendInt(dst, int64(n), 10), ';') }
	n := int(c &^ kind)
	switch c & kind {
	case basic:
		if n >= bright {
			base += 60 - bright
		}
		code(base + n)
	case palette:
		code(base + 8)
		code(5)
		code(n)
	case rgb:
		code(base + 8)
		code(2)
		code(n >> 16)
		code(n >> 8 & 0xff)
		code(n & 0xff)
	}
	return dst
}
