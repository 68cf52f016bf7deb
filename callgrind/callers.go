package callgrind

import (
	"strconv"
	"strings"
)

// A splitter splits names such as f'2 and f'g'h. Callgrind appends the level of recursion
// (--separate-recs) and the callers (--separate-callers) to a name. A quote may also be part of
// a name, as in ns::'lambda'() or for<'a> fn(&'a T). So only the name of a function in the
// profile counts as a caller.
type splitter struct {
	known map[string]uint32 // nodes by name, and by name up to a quote
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

// quotes reports whether a name has quotes, and is short enough to search for callers.
func quotes(name string) bool {
	n := strings.Count(name, "'")
	return n > 0 && n <= maxQuotes && len(name) <= maxCompared
}

// split cuts the level and the callers off a function's name. It returns the callers innermost
// first.
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

// cutSuffix splits a function's name into the bare name and the suffix: a level of recursion,
// callers or a version.
func cutSuffix(name string) (bare, suffix string) {
	if i := strings.IndexAny(name, "'@"); i >= 0 {
		return name[:i], name[i:]
	}
	return name, ""
}
