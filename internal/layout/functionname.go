package layout

import (
	"strings"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
)

// ShortName replaces the arguments of each template in a demangled name by …. For
// std::vector<int, std::allocator<int>>::at(unsigned long) it returns
// std::vector<…>::at(unsigned long). It keeps operators, such as operator<, and the brackets of
// Rust's <A as B>::c. It returns a name with unbalanced brackets unchanged.
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

// operator returns the length of an operator at name[i:], such as operator<< or operator(), or
// 0. It includes the blank that demanglers print between operator< and template arguments.
// Operators that are words, such as operator new, count as ordinary names.
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

// utf8First is the smallest byte of a non-ASCII rune.
const utf8First = 0x80

// argumentsOf returns the range of the arguments in a demangled name, with their parentheses:
// (int, long) in ns::f<int>(int, long) const. The range is empty if there are none, as in f().
func argumentsOf(name string) (from, to int) {
	end := len(name)
	if i := strings.LastIndex(name, "+0x"); i > 0 { // offset from a symbol
		end = i
	}
	if i := strings.Index(name[:end], " [clone "); i > 0 {
		end = i
	}
	to = strings.LastIndexByte(name[:end], ')') + 1
	// no arguments, as in (anonymous namespace)::f
	if to == 0 || to < end && name[to] != ' ' || strings.ContainsAny(name[to:end], ":>}]") {
		return end, end
	}
	depth := 0
	for from = to - 1; from >= 0; from-- {
		switch name[from] {
		case ')':
			depth++
		case '(':
			depth--
		}
		if depth == 0 {
			break
		}
	}
	if from <= 0 || from == to-len("()") || strings.HasSuffix(name[:from], "::") {
		return end, end
	}
	return from, to
}

// briefName returns a function's name without arguments, return type and offset, and with … for
// template arguments. If the name has more than maxFoldName characters, briefName removes outer
// scopes and, if necessary, cuts off the end.
func briefName(name string) string {
	if i := strings.LastIndex(name, "+0x"); i > 0 {
		name = name[:i]
	}
	if from, to := argumentsOf(name); from < to {
		name = name[:from]
	}
	name = withoutReturnType(ShortName(name))
	if utf8.RuneCountInString(name) > maxFoldName {
		name = withoutScopes(name)
	}
	if utf8.RuneCountInString(name) > maxFoldName {
		n := maxFoldName - escape.CutRune([]byte(name[:maxFoldName]))
		name = name[:n] + "…"
	}
	return name
}

// withoutReturnType returns the part of a name after its last blank outside of brackets. An
// operator's name may itself contain blanks.
func withoutReturnType(name string) string {
	depth := 0
	for i := operatorIndex(name) - 1; i >= 0; i-- {
		switch name[i] {
		case ')', '>', '}':
			depth++
		case '(', '<', '{':
			depth--
		case ' ':
			if depth == 0 {
				return name[i+1:]
			}
		}
	}
	return name
}

// withoutScopes replaces outer scopes of a name by …: as many as necessary for maxFoldName
// characters, or all.
func withoutScopes(name string) string {
	depth, last := 0, 0
	for i := range operatorIndex(name) {
		switch name[i] {
		case '(', '<', '{':
			depth++
		case ')', '>', '}':
			depth--
		case ':':
			if depth != 0 || i == 0 || !strings.HasPrefix(name[i:], "::") {
				continue
			}
			if last = i; 1+utf8.RuneCountInString(name[i:]) <= maxFoldName {
				return "…" + name[i:]
			}
		}
	}
	if last == 0 {
		return name
	}
	return "…" + name[last:]
}

// operatorIndex returns the index of the word operator in the last part of a name, such as
// X::operator(), or the length of the name.
func operatorIndex(name string) int {
	const word = "operator"
	i := strings.LastIndex(name, word)
	end := i + len(word)
	if i < 0 || i > 0 && isNameByte(name[i-1]) || end < len(name) && isNameByte(name[end]) {
		return len(name)
	}
	return i
}
