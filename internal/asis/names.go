package asis

import (
	"strconv"
	"strings"
)

// gnuName converts shown, LLVM's demangled name, to libiberty's form. Rust's names are the same in
// both.
func gnuName(mangled, shown string) string {
	if !strings.HasPrefix(mangled, "_Z") && !strings.HasPrefix(mangled, "__Z") || isOldRust(mangled) {
		return shown
	}
	if strings.Contains(shown, "'") {
		shown = localTypes(shown)
	}
	if i := strings.LastIndex(shown, " (."); i >= 0 && strings.HasSuffix(shown, ")") {
		shown = clones(shown[:i], shown[i+2:len(shown)-1])
	}
	if !strings.Contains(shown, ">>") {
		return shown
	}
	b := make([]byte, 0, len(shown)+8)
	for i := range len(shown) {
		if shown[i] == '>' && i > 0 && shown[i-1] == '>' && !isShift(shown, i) {
			b = append(b, ' ')
		}
		b = append(b, shown[i])
	}
	return string(b)
}

// isShift reports whether the character at i ends an operator >>.
func isShift(s string, i int) bool {
	before, after := s[:i-1], s[i+1:]
	return strings.HasSuffix(before, "operator") || strings.HasSuffix(before, ")") && strings.HasPrefix(after, "(")
}

// isOldRust reports whether a name has Rust's old mangling, which ends with a hash.
func isOldRust(mangled string) bool {
	const hash = "17h0123456789abcdefE"
	if len(mangled) < len(hash) {
		return false
	}
	end := mangled[len(mangled)-len(hash):]
	return strings.HasPrefix(end, "17h") && strings.HasSuffix(end, "E") && strings.Trim(end[3:len(end)-1], "0123456789abcdef") == ""
}

// clones appends the suffixes that the compiler has added to the name of a cloned function. As in
// libiberty, .isra.0.cold becomes [clone .isra.0] [clone .cold].
func clones(name, suffixes string) string {
	b := []byte(name)
	for suffixes != "" {
		end := len(suffixes)
		for i := 1; i+1 < len(suffixes); i++ {
			if suffixes[i] == '.' && (suffixes[i+1] < '0' || suffixes[i+1] > '9') {
				end = i
				break
			}
		}
		b = append(append(append(b, " [clone "...), suffixes[:end]...), ']')
		suffixes = suffixes[end:]
	}
	return string(b)
}

// localTypes rewrites unnamed types: 'lambda0'(int) becomes {lambda(int)#2}, and 'unnamed' becomes
// {unnamed type#1}.
func localTypes(s string) string {
	var b strings.Builder
	for {
		i := strings.IndexByte(s, '\'')
		if i < 0 {
			break
		}
		end := strings.IndexByte(s[i+1:], '\'')
		if end < 0 {
			break
		}
		word, rest := s[i+1:i+1+end], s[i+2+end:]
		if number, ok := strings.CutPrefix(word, "unnamed"); ok && isNumber(number) {
			b.WriteString(s[:i] + "{unnamed type#" + ordinal(number) + "}")
			s = rest
			continue
		}
		number, ok := strings.CutPrefix(word, "lambda")
		n := balanced(rest)
		if !ok || !isNumber(number) || n == 0 {
			b.WriteString(s[:i+1])
			s = s[i+1:]
			continue
		}
		b.WriteString(s[:i] + "{lambda" + localTypes(rest[:n]) + "#" + ordinal(number) + "}")
		s = rest[n:]
	}
	return b.String() + s
}

func isNumber(s string) bool { return strings.Trim(s, "0123456789") == "" && len(s) < 9 }

// ordinal converts LLVM's number of a type to libiberty's. The first type has no number in LLVM and
// 1 in libiberty; the second has 0 and 2.
func ordinal(number string) string {
	if number == "" {
		return "1"
	}
	n, _ := strconv.Atoi(number)
	return strconv.Itoa(n + 2)
}

// balanced returns the length of the parenthesized text at the beginning of s; 0 if there is none.
func balanced(s string) int {
	depth := 0
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		if depth == 0 {
			break
		}
	}
	return 0
}
