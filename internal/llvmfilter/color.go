package llvmfilter

import "bytes"

// Last digits of the SGR codes of three colours.
const (
	green = '2'
	blue  = '4'
	cyan  = '6'
)

// A style is the state after the log's SGR sequences so far.
type style struct {
	color byte // last digit of 30 to 37; 0 without a colour
	bold  bool
}

// text prints b, which has no element. SGR sequences in it change the style; all other bytes are
// unchanged.
func (f *Filter) text(b []byte) {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '\x1b')
		if i < 0 {
			f.print(b)
			return
		}
		at += i
		code, size := sgr(b[at:])
		if size == 0 {
			at++
			continue
		}
		f.print(b[:at])
		f.change(code)
		b, at = b[at+size:], 0
	}
}

// sgr parses the SGR sequence at the beginning of b, which starts with ESC. code is the last
// digit of a colour, 'n' for normal or 'b' for bold. size is 0 unless the specification has the
// sequence.
func sgr(b []byte) (code byte, size int) {
	switch {
	case len(b) < 4 || b[1] != '[':
	case b[3] == 'm' && b[2] == '0':
		return 'n', 4
	case b[3] == 'm' && b[2] == '1':
		return 'b', 4
	case len(b) >= 5 && b[4] == 'm' && b[2] == '3' && b[3] >= '0' && b[3] <= '7':
		return b[3], 5
	}
	return 0, 0
}

// change applies an SGR sequence of the log to the style. As in LLVM, a colour ends bold on the
// terminal, but not in the style.
func (f *Filter) change(code byte) {
	switch code {
	case 'n':
		f.resetColor()
	case 'b':
		f.bold = true
		if f.o.Color {
			f.out = append(f.out, "\x1b[1m"...)
		}
	default:
		f.color = code
		if f.o.Color {
			f.setColor(code, false)
		}
	}
}

// resetColor resets the style. A reset without an effect is not printed.
func (f *Filter) resetColor() {
	if f.style == (style{}) {
		return
	}
	f.style = style{}
	if f.o.Color {
		f.out = append(f.out, "\x1b[0m"...)
	}
}

// restoreColor restores the style after the text that replaces an element.
func (f *Filter) restoreColor() {
	switch {
	case !f.o.Color:
	case f.color != 0:
		f.setColor(f.color, f.bold)
	default:
		f.out = append(f.out, "\x1b[0m"...)
		if f.bold {
			f.out = append(f.out, "\x1b[1m"...)
		}
	}
}

// highlight begins the text that replaces an element, in a colour that the surrounding text does
// not have.
func (f *Filter) highlight() {
	if !f.o.Color {
		return
	}
	c := byte(blue)
	if f.color == blue {
		c = cyan
	}
	f.setColor(c, f.bold)
}

func (f *Filter) setColor(c byte, bold bool) {
	if bold {
		f.out = append(f.out, "\x1b[0;1;3"...)
	} else {
		f.out = append(f.out, "\x1b[0;3"...)
	}
	f.out = append(f.out, c, 'm')
}

// beginValue begins a value in the text that replaces an element, in green. After the value,
// highlight restores the colour of the text.
func (f *Filter) beginValue() {
	if f.o.Color {
		f.setColor(green, f.bold)
	}
}

func (f *Filter) value(b []byte) {
	f.beginValue()
	f.out = append(f.out, b...)
	f.highlight()
}

func (f *Filter) valueString(s string) {
	f.beginValue()
	f.out = append(f.out, s...)
	f.highlight()
}
