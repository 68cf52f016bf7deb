package appearance

import "strings"

// Arguments returns the place of the arguments in a demangled name, with their parentheses:
// (int, long) of ns::f<int>(int, long) const. It is empty if there are none.
func Arguments(name string) (from, to int) {
	end := len(name)
	if i := strings.LastIndex(name, "+0x"); i > 0 { // from a symbol
		end = i
	}
	if i := strings.Index(name[:end], " [clone "); i > 0 {
		end = i
	}
	to = strings.LastIndexByte(name[:end], ')') + 1
	if to == 0 || to < end && name[to] != ' ' || strings.ContainsAny(name[to:end], ":>}]") { // of (anonymous namespace)::f
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
