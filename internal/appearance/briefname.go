package appearance

import (
	"strings"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
)

// briefName returns the name of a function without its arguments, return type and distance, and
// with … for the arguments of templates. A name of more than maxFoldName characters loses outer
// scopes; if that is not enough, its end is cut.
func briefName(name string) string {
	if i := strings.LastIndex(name, "+0x"); i > 0 {
		name = name[:i]
	}
	if from, to := Arguments(name); from < to {
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

// withoutReturnType returns the part of a name after its last blank that is not in brackets. The
// name of an operator may have blanks of its own.
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

// withoutScopes returns a name with … for as many of its outer scopes as it needs to have
// maxFoldName characters, or for all of them.
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

// operatorIndex returns the index of the word operator at the end of a name, such as X::operator(),
// or the length of a name without it.
func operatorIndex(name string) int {
	const word = "operator"
	i := strings.LastIndex(name, word)
	end := i + len(word)
	if i < 0 || i > 0 && isNameByte(name[i-1]) || end < len(name) && isNameByte(name[end]) {
		return len(name)
	}
	return i
}
