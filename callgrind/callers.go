package callgrind

import (
	"strconv"
	"strings"
)

// A splitter splits names such as f'2 and f'g'h. Callgrind appends the level of recursion
// (--separate-recs) and the callers (--separate-callers) to a function's name. A quote may also be
// part of a name, as in ns::'lambda'() or for<'a> fn(&'a T). So only the name of a function of the
// profile is taken for a caller.
type splitter struct {
	known map[string]uint32 // the nodes of names, and of names up to a quote
}

// maxQuotes bounds the quotes in a name that is searched for callers. --separate-callers=N makes N
// quotes.
const maxQuotes = 64

func newSplitter(v *resolution) *splitter {
	s := &splitter{known: make(map[string]uint32, len(v.all))}
	note := func(name string, n int) {
		if _, ok := s.known[name]; !ok {
			s.known[name] = uint32(n)
		}
	}
	for n := range v.all {
		name := v.m.r.Text(v.all[n].fn)
		note(name, n)
		if quotes(name) {
			for i := range len(name) {
				if name[i] == '\'' {
					note(name[:i], n)
				}
			}
		}
	}
	return s
}

// quotes reports whether a name has quotes, and neither too many nor too much text to be searched
// for callers.
func quotes(name string) bool {
	n := strings.Count(name, "'")
	return n > 0 && n <= maxQuotes && len(name) <= maxCompared
}

// split splits a function's name into the name without level and callers, and the callers,
// innermost first.
func (s *splitter) split(name string) (base string, callers []string) {
	if !quotes(name) {
		return name, nil
	}
	for i := range len(name) {
		if name[i] != '\'' {
			continue
		}
		callers = callers[:0]
		valid := true
		for part := range strings.SplitSeq(name[i+1:], "'") {
			if _, err := strconv.ParseUint(part, 10, 64); err == nil {
				continue // a level of recursion
			}
			if _, ok := s.known[part]; !ok {
				valid = false
				break
			}
			callers = append(callers, part)
		}
		if valid {
			return name[:i], callers
		}
	}
	return name, nil
}

// cutSuffix cuts a function's name before its level, its callers or its version.
func cutSuffix(name string) (bare, suffix string) {
	if i := strings.IndexAny(name, "'@"); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}
