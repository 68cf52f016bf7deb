package appearance

import "strings"

// ShortName returns a demangled name with … in place of the arguments of each template:
// std::vector<…>::at(unsigned long) for std::vector<int, std::allocator<int>>::at(unsigned long).
// Operators, such as operator<, and the brackets of Rust's <A as B>::c, are kept. A name whose
// brackets do not match is returned as it is.
func ShortName(name string) string {
	if strings.IndexByte(name, '<') < 0 {
		return name
	}
	var b strings.Builder
	depth, symbol := 0, -1 // symbol: the end of the last operator
	for i := 0; i < len(name); i++ {
		if n := operator(name, i); n > 0 {
			if depth == 0 {
				b.WriteString(name[i : i+n])
			}
			i += n - 1
			symbol = i + 1
			continue
		}
		switch c := name[i]; {
		case c == '<' && (depth > 0 || i > 0 && (i == symbol || isNameByte(name[i-1]))):
			if depth == 0 {
				b.WriteString("<…>")
			}
			depth++
		case c == '>' && depth > 0 && name[i-1] != '-' && name[i-1] != '=':
			depth--
		case depth == 0:
			b.WriteByte(c)
		}
	}
	if depth != 0 {
		return name
	}
	return b.String()
}

// operator returns the length of an operator at name[i:], such as operator<< or operator(), with
// the blank that demanglers print between operator< and the arguments of a template. It is 0 if
// there is none. Operators that are words, such as operator new, are names like others.
func operator(name string, i int) int {
	const word = "operator"
	if name[i] != 'o' || !strings.HasPrefix(name[i:], word) || i > 0 && isNameByte(name[i-1]) {
		return 0
	}
	symbol := name[i+len(word):]
	n := 0
	for _, op := range []string{"()", "[]", "<=>", "<<=", ">>=", "<<", ">>", "<=", ">=", "->*", "->", "<", ">"} {
		if strings.HasPrefix(symbol, op) {
			n = len(op)
			break
		}
	}
	if n == 0 {
		n = len(symbol) - len(strings.TrimLeft(symbol, "+-*/%^&|~!=,"))
	}
	if n == 0 {
		return 0
	}
	if strings.HasPrefix(symbol[n:], " <") {
		n++
	}
	return len(word) + n
}

// isNameByte reports whether c may be in the name of a function or type.
func isNameByte(c byte) bool {
	return c == '_' || c == '$' || c >= utf8First || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// utf8First is the first byte of a rune that is not ASCII.
const utf8First = 0x80
