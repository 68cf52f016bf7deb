package markup

import (
	"math/bits"
	"strconv"
	"strings"
)

// AppendMarkup implements [Element].
func (r Reset) AppendMarkup(dst []byte) []byte {
	if r.Extra == "" {
		return append(dst, "{{{reset}}}"...)
	}
	start := len(dst)
	dst = append(dst, "{{{reset:"...)
	return append(appendName(dst, start, r.Extra, strict), "}}}"...)
}

// AppendMarkup implements [Element]. A zero build ID is printed as 00, since the format requires a
// build ID.
func (m Module) AppendMarkup(dst []byte) []byte {
	start := len(dst)
	dst = strconv.AppendUint(append(dst, "{{{module:"...), m.ID, 10)
	dst = appendName(append(dst, ':'), start, m.Name, colonsKept)
	dst = append(dst, ":elf:"...)
	if m.BuildID.IsZero() {
		return append(dst, "00}}}"...)
	}
	return append(m.BuildID.AppendHex(dst), "}}}"...)
}

// AppendMarkup implements [Element].
func (m MMap) AppendMarkup(dst []byte) []byte {
	dst = appendAddr(append(dst, "{{{mmap:"...), m.Addr)
	dst = strconv.AppendUint(append(dst, ":0x"...), m.Size, 16)
	dst = strconv.AppendUint(append(dst, ":load:"...), m.Module, 10)
	dst = append(append(dst, ':'), m.Mode.String()...)
	if dst[len(dst)-1] == ':' {
		dst = append(dst, '-')
	}
	return append(appendAddr(append(dst, ':'), m.Rel), "}}}"...)
}

// AppendMarkup implements [Element].
func (p PC) AppendMarkup(dst []byte) []byte {
	dst = appendAddr(append(dst, "{{{pc:"...), p.Addr)
	return append(append(dst, p.Kind.suffix()...), "}}}"...)
}

// AppendMarkup implements [Element].
func (b BT) AppendMarkup(dst []byte) []byte {
	start := len(dst)
	dst = strconv.AppendUint(append(dst, "{{{bt:"...), b.Frame, 10)
	dst = appendAddr(append(dst, ':'), b.Addr)
	dst = append(dst, b.Kind.suffix()...)
	if message := b.Message; message != "" {
		dst = append(dst, ':')
		if b.Kind == Ambiguous && pcKind([]byte(":"+message), 0) != Ambiguous { // read as a kind
			dst = append(dst, `\x`...)
			dst = strconv.AppendUint(dst, uint64(message[0]), 16)
			message = message[1:]
		}
		dst = appendName(dst, start, message, colonsKept)
	}
	return append(dst, "}}}"...)
}

// AppendMarkup implements [Element].
func (d Data) AppendMarkup(dst []byte) []byte {
	return append(appendAddr(append(dst, "{{{data:"...), d.Addr), "}}}"...)
}

// AppendMarkup implements [Element].
func (s Symbol) AppendMarkup(dst []byte) []byte {
	start := len(dst)
	return append(appendName(append(dst, "{{{symbol:"...), start, s.Name, symbolName), "}}}"...)
}

// AppendMarkup implements [Element].
func (h HexDict) AppendMarkup(dst []byte) []byte {
	start := len(dst)
	return append(appendName(append(dst, "{{{hexdict:"...), start, h.Body, hexdictBody), "}}}"...)
}

// AppendMarkup implements [Element].
func (d DumpFile) AppendMarkup(dst []byte) []byte {
	start := len(dst)
	dst = append(appendName(append(dst, "{{{dumpfile:"...), start, d.Type, strict), ':')
	return append(appendName(dst, start, d.Name, strict), "}}}"...)
}

func (k PCKind) suffix() string {
	switch k {
	case ReturnAddress:
		return ":ra"
	case Precise:
		return ":pc"
	}
	return ""
}

// appendAddr appends addr as the spec's %p, with an even number of digits. It prints 0x, since
// LLVM's filter rejects 0X.
func appendAddr(dst []byte, addr uint64) []byte {
	dst = append(dst, "0x"...)
	if n := bits.Len64(addr); (n+3)/4%2 == 1 || n == 0 {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, addr, 16)
}

// A nameRule selects the special bytes that appendName leaves unescaped.
type nameRule uint8

const (
	strict     nameRule = iota // no special byte
	colonsKept                 // ':'
	// a "::" that a parser of symbols keeps in the name, and a "{{{" that begins no element
	symbolName
	hexdictBody // ':' and line ends
)

// appendName appends a name, escaped so that a parser returns the whole name. dst[start] is the
// first byte of the element. If the element would become longer than maxElement, appendName cuts
// the name.
func appendName(dst []byte, start int, name string, rule nameRule) []byte {
	const (
		digits = "0123456789abcdef"
		// end of a name that was cut; none of its bytes needs an escape
		cut  = "…"
		tail = len(`\x00`) + len(cut) + len(":elf:") + 2*64 + len("}}}") // longest rest of the element
	)
	for i := 0; i < len(name); i++ {
		if len(dst)-start >= maxElement-tail {
			return append(dst, cut...)
		}
		c := name[i]
		switch {
		case c == '}',
			c == '\n' && rule != hexdictBody,
			c == ':' && (rule == strict || rule == symbolName && !(colons(name, i) == 2 && i+2 < len(name))),
			c == '{' && strings.HasPrefix(name[i:], "{{{") && (rule != symbolName || beginsElement(name[i+3:])):
			dst = append(dst, '\\', 'x', digits[c>>4], digits[c&15])
		case c == ':' && rule == symbolName:
			dst = append(dst, "::"...)
			i++
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// beginsElement reports whether "{{{" and rest may begin an element. It does not look for the end
// of that element.
func beginsElement(rest string) bool {
	n := 0
	for n < len(rest) && 'a' <= rest[n] && rest[n] <= 'z' {
		n++
	}
	return n > 0 && (n == len(rest) || rest[n] == ':')
}
