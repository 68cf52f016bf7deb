package judge

import "strings"

// plainName returns a demangled name without the parts that some programs omit in logs: return
// type, parameters, template arguments, qualifiers and suffixes.
func plainName(name string) string {
	name = strings.ReplaceAll(name, "(anonymous namespace)", "{anonymous}")
	var b strings.Builder
	depth := 0
	for i := 0; i < len(name); i++ {
		if n := operatorAt(name, i); n > 0 && depth == 0 {
			b.WriteString(name[i : i+n])
			i += n - 1
			continue
		}
		switch c := name[i]; {
		case c == '(' || c == '<':
			depth++
		case c == ')' || c == '>':
			depth--
		case depth > 0:
		case c == '[':
			i = len(name)
		default:
			b.WriteByte(c)
		}
	}
	plain := strings.TrimRight(b.String(), " &")
	for _, qualifier := range []string{" const", " volatile"} {
		plain = strings.TrimSuffix(plain, qualifier)
	}
	before := plain
	if i := strings.Index(plain, "operator "); i >= 0 {
		before = plain[:i]
	}
	return plain[strings.LastIndexByte(before, ' ')+1:]
}

// isWord reports whether c may be in an identifier.
func isWord(c byte) bool { return c == '_' || c-'0' < 10 || c|0x20-'a' < 26 }

// operatorAt returns the length of "operator" with its symbol at name[at:], or 0.
func operatorAt(name string, at int) int {
	const word = "operator"
	if !strings.HasPrefix(name[at:], word) || at > 0 && isWord(name[at-1]) {
		return 0
	}
	sign := name[at+len(word):]
	n := len(sign) - len(strings.TrimLeft(sign, "<>=!+-*/%^&|~,"))
	if strings.HasPrefix(sign, "()") || strings.HasPrefix(sign, "[]") {
		n = 2
	}
	if n == 0 {
		return 0
	}
	return len(word) + n
}
