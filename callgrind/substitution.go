package callgrind

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// A Substitution replaces text in names, like the command s/OLD/NEW/ of sed and Perl. Its zero
// value replaces nothing.
type Substitution struct {
	old   *regexp.Regexp
	with  string
	every bool // replace every match, not only the first
}

// ParseSubstitution parses s/OLD/NEW/ with the flags g (every match) and i (any case). OLD is a
// regular expression of package regexp; in NEW, \1 and $1 are the text of the first group. Another
// character may be used instead of the slash. In OLD and NEW, \ escapes that character.
func ParseSubstitution(text string) (Substitution, error) {
	var s Substitution
	if len(text) < 2 || text[0] != 's' || strings.IndexByte("\\ \t\n", text[1]) >= 0 {
		return s, fmt.Errorf("%q is not of the form s/OLD/NEW/", text)
	}
	var fields []string
	field := []byte{}
	rest := text[2:]
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '\\' && i+1 < len(rest):
			i++
			if rest[i] != text[1] {
				field = append(field, '\\')
			}
			field = append(field, rest[i])
		case c == text[1] && len(fields) < 2:
			fields = append(fields, string(field))
			field = field[:0]
		default:
			field = append(field, c)
		}
	}
	if len(fields) != 2 {
		return s, fmt.Errorf("%q has no third %c: write s%[2]cOLD%[2]cNEW%[2]c", text, text[1])
	}
	old := fields[0]
	for _, flag := range string(field) {
		switch flag {
		case 'g':
			s.every = true
		case 'i':
			old = "(?i)" + old
		default:
			return s, fmt.Errorf("%q has the flag %q; the flags are g and i", text, flag)
		}
	}
	if fields[0] == "" {
		return s, errors.New("the expression to replace is empty")
	}
	var err error
	if s.old, err = regexp.Compile(old); err != nil {
		return Substitution{}, err
	}
	s.with = expansion(fields[1])
	return s, nil
}

// expansion converts a replacement of sed or Perl to the syntax of package regexp.
func expansion(with string) string {
	var b strings.Builder
	for i := 0; i < len(with); i++ {
		next := byte(0)
		if i+1 < len(with) {
			next = with[i+1]
		}
		switch c := with[i]; {
		case (c == '\\' || c == '$') && '0' <= next && next <= '9':
			b.WriteString("${" + string(next) + "}")
			i++
		case c == '\\' && next != 0:
			i++
			if next == '$' {
				b.WriteByte('$')
			}
			b.WriteByte(next)
		case c == '$' && next != '{':
			b.WriteString("$$")
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

func (s *Substitution) replaced(name string) string {
	if s.old == nil {
		return name
	}
	if s.every {
		return s.old.ReplaceAllString(name, s.with)
	}
	at := s.old.FindStringSubmatchIndex(name)
	if at == nil {
		return name
	}
	b := append([]byte{}, name[:at[0]]...)
	return string(append(s.old.ExpandString(b, s.with, name, at), name[at[1]:]...))
}

// rewrite applies the substitutions to name in order. It cuts each result to maxName bytes.
func rewrite(all []Substitution, name string) string {
	for i := range all {
		if name = all[i].replaced(name); len(name) > maxName {
			name = name[:maxName]
		}
	}
	return name
}
