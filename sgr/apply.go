package sgr

import (
	"bytes"
	"strings"
)

// parse returns the parameter bytes of seq, and whether seq is exactly one sequence: ESC [, then
// only digits, ';' and ':', then m.
func parse(seq []byte) (params []byte, ok bool) {
	if len(seq) < 3 || seq[0] != 0x1b || seq[1] != '[' || seq[len(seq)-1] != 'm' {
		return nil, false
	}
	params = seq[2 : len(seq)-1]
	for _, c := range params {
		if (c < '0' || c > '9') && c != ';' && c != ':' {
			return nil, false
		}
	}
	return params, true
}

// Apply returns the state after one sequence. It ignores codes without a field in State (fonts,
// overline, the underline's own colour) with their arguments, and incomplete codes. If seq is not a
// sequence, Apply returns s.
func (s State) Apply(seq []byte) State {
	b, ok := parse(seq)
	if !ok {
		return s
	}
	for p := (params{rest: b}); !p.done; {
		code, subs := number(p.next())
		switch {
		case code == 0:
			s = State{}
		case code == 4 && len(subs) > 0: // 4:0 ends underlining, 4:1 to 4:5 are its kinds
			s.Attrs &^= Underline
			if n, _ := number(subs[1:]); n != 0 {
				s.Attrs |= Underline
			}
		case 1 <= code && code <= 9:
			s.Attrs |= attrOf(code)
		case code == 21: // doubly underlined
			s.Attrs |= Underline
		case code == 22:
			s.Attrs &^= Bold | Faint
		case 23 <= code && code <= 29 && code != 26:
			s.Attrs &^= attrOf(code - 20)
		case 30 <= code && code <= 37:
			s.Foreground = Black + Color(code-30)
		case code == 38:
			s.Foreground = p.color(subs, s.Foreground)
		case code == 39:
			s.Foreground = Default
		case 40 <= code && code <= 47:
			s.Background = Black + Color(code-40)
		case code == 48:
			s.Background = p.color(subs, s.Background)
		case code == 49:
			s.Background = Default
		case code == 58: // the underline's colour
			p.color(subs, Default)
		case 90 <= code && code <= 97:
			s.Foreground = (Black + Color(code-90)).Bright()
		case 100 <= code && code <= 107:
			s.Background = (Black + Color(code-100)).Bright()
		}
	}
	return s
}

// attrOf returns the attribute that one of the codes 1 to 9 sets.
func attrOf(code int) Attr {
	if code == 6 { // rapid blinking; 26 does not end it
		return Blink
	}
	return 1 << strings.IndexByte(attrCodes, byte('0'+code))
}

// maxNumber replaces larger numbers. It is above every code and every colour value.
const maxNumber = 999

// number parses the digits at the beginning of b, and returns the bytes after them. Without digits,
// n is 0.
func number(b []byte) (n int, rest []byte) {
	for len(b) > 0 && b[0] != ':' {
		n = min(n*10+int(b[0]-'0'), maxNumber)
		b = b[1:]
	}
	return n, b
}

// params iterates over the parameters of a sequence. There is always a parameter: without any
// bytes, it is empty.
type params struct {
	rest []byte
	done bool // no parameter is left
}

// next returns the bytes of the next parameter, with its sub-parameters after colons, or no bytes.
func (p *params) next() []byte {
	param, rest, more := bytes.Cut(p.rest, []byte{';'})
	p.rest, p.done = rest, !more
	return param
}

// color parses the arguments of 38, 48 or 58. They are the sub-parameters in subs, as in 38:5:n,
// 38:2:r:g:b and 38:2:colourspace:r:g:b. If subs is empty, they are the next parameters, as in
// 38;5;n and 38;2;r;g;b. If the arguments are incomplete, out of range or of another kind, color
// returns old.
func (p *params) color(subs []byte, old Color) Color {
	var args [8]int
	n := 0
	if len(subs) > 0 {
		for ; len(subs) > 0 && n < len(args); n++ {
			args[n], subs = number(subs[1:])
		}
	} else {
		for want := 1; n < want && !p.done; n++ {
			args[n], _ = number(p.next())
			switch {
			case n == 0 && args[0] == 5:
				want = 2
			case n == 0 && args[0] == 2:
				want = 4
			}
		}
	}
	switch value := args[1:max(n, 1)]; {
	case args[0] == 5 && len(value) >= 1 && value[0] <= 255:
		return Indexed(uint8(value[0]))
	case args[0] == 2 && len(value) >= 3:
		if len(value) >= 4 {
			value = value[1:] // after the colour space
		}
		if max(value[0], value[1], value[2]) <= 255 {
			return RGB(uint8(value[0]), uint8(value[1]), uint8(value[2]))
		}
	}
	return old
}
