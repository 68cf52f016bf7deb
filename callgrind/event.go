package callgrind

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// An Event is a kind of what is counted.
type Event struct {
	Name string // Ir
	Long string // Instruction Fetches; may be empty

	// Terms define an event that is not counted, but calculated.
	Terms   []Term
	Formula string // Terms, as the profile has them
}

// A Term is a part of a sum: so many times the cost of another event.
type Term struct {
	Factor int64
	Event  string
}

// parseEvent parses what stands behind "event:": NAME [= FORMULA] [: LONG].
func parseEvent(s string) (e Event, err error) {
	def, long, _ := strings.Cut(s, ":")
	e.Long = strings.TrimSpace(long)
	name, formula, derived := strings.Cut(def, "=")
	e.Name = strings.TrimSpace(name)
	if e.Name == "" || strings.ContainsAny(e.Name, " \t") {
		return e, fmt.Errorf("%q is no event", s)
	}
	if derived {
		e.Formula = strings.TrimSpace(formula)
		e.Terms, err = parseFormula(e.Formula)
	}
	return e, err
}

// parseFormula parses a sum of events, each with a factor before it or none:
// "2 Ir + 3*Dr".
func parseFormula(s string) (terms []Term, err error) {
	for part := range strings.SplitSeq(s, "+") {
		t := Term{Factor: 1}
		rest := strings.TrimSpace(part)
		digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
		hex := strings.HasPrefix(rest, "0x")
		if hex {
			digits = 2 + len(rest) - 2 - len(strings.TrimLeft(rest[2:], "0123456789abcdefABCDEF"))
		}
		if digits > 0 {
			if t.Factor, err = strconv.ParseInt(rest[:digits], 0, 64); err != nil && !hex {
				t.Factor, err = strconv.ParseInt(rest[:digits], 10, 64)
			}
			if err != nil {
				return nil, fmt.Errorf("%q is no number", rest[:digits])
			}
			rest = strings.TrimLeft(rest[digits:], " \t")
			rest = strings.TrimLeft(strings.TrimPrefix(rest, "*"), " \t")
		}
		t.Event = strings.TrimSpace(rest)
		if t.Event == "" || strings.ContainsAny(t.Event, " \t*=,") || len(terms) == maxTerms {
			return nil, fmt.Errorf("%q is no sum of events: write 2 Ir + Dr", s)
		}
		terms = append(terms, t)
	}
	return terms, nil
}

// events are those of all parts of a profile: the counted ones in the order in
// which they came, and what "event:" lines say.
type events struct {
	counted []Event
	said    []Event
}

// column returns the place of an event among the counted ones, or -1 if there
// are too many.
func (e *events) column(name string) int {
	i := slices.IndexFunc(e.counted, func(c Event) bool { return c.Name == name })
	if i >= 0 {
		return i
	}
	if len(e.counted) == maxEvents {
		return -1
	}
	c := Event{Name: name}
	for _, s := range e.said {
		if s.Name == name && s.Terms == nil {
			c.Long = s.Long
		}
	}
	e.counted = append(e.counted, c)
	return len(e.counted) - 1
}

// say takes what an "event:" line says. It reports whether there was room.
func (e *events) say(ev Event) bool {
	for i := range e.counted {
		if e.counted[i].Name == ev.Name && ev.Terms == nil && ev.Long != "" {
			e.counted[i].Long = ev.Long
		}
	}
	if i := slices.IndexFunc(e.said, func(s Event) bool { return s.Name == ev.Name }); i >= 0 {
		e.said[i] = ev
		return true
	}
	if len(e.said) == maxEvents {
		return false
	}
	e.said = append(e.said, ev)
	return true
}

// derived returns the events that are calculated: all that their formulas name
// is there.
func (e *events) derived() (all []Event) {
	for _, s := range e.said {
		if s.Terms != nil && !slices.ContainsFunc(e.counted, func(c Event) bool { return c.Name == s.Name }) {
			if _, err := e.weights(s); err == nil {
				all = append(all, s)
			}
		}
	}
	return all
}

// find returns an event by its name.
func (e *events) find(name string) (Event, bool) {
	for _, all := range [][]Event{e.counted, e.said} {
		if i := slices.IndexFunc(all, func(c Event) bool { return c.Name == name }); i >= 0 {
			return all[i], true
		}
	}
	return Event{}, false
}

// weights returns how often an event counts each of the counted ones: it is
// calculated of them, or of others that are.
func (e *events) weights(ev Event) ([]int64, error) {
	work := 16 * maxEvents
	return e.weigh(ev, nil, &work)
}

func (e *events) weigh(ev Event, within []string, work *int) ([]int64, error) {
	w := make([]int64, len(e.counted))
	i := slices.IndexFunc(e.counted, func(c Event) bool { return c.Name == ev.Name })
	switch {
	case ev.Terms == nil && i >= 0:
		w[i] = 1
		return w, nil
	case ev.Terms == nil:
		return nil, fmt.Errorf("the profile has no event %s: it has %s", ev.Name, e.list())
	case slices.Contains(within, ev.Name):
		return nil, fmt.Errorf("event %s is made of itself", ev.Name)
	}
	within = append(within, ev.Name)
	for _, t := range ev.Terms {
		if *work--; *work < 0 {
			return nil, fmt.Errorf("event %s is made of too many others", ev.Name)
		}
		part, ok := e.find(t.Event)
		if !ok {
			return nil, fmt.Errorf("event %s: the profile has no event %s: it has %s", ev.Name, t.Event, e.list())
		}
		pw, err := e.weigh(part, within, work)
		if err != nil {
			return nil, err
		}
		for i := range w {
			w[i] = plus(w[i], times(pw[i], t.Factor))
		}
	}
	return w, nil
}

// list names the events there are.
func (e *events) list() string {
	if len(e.counted) == 0 {
		return "none"
	}
	var all []string
	for _, c := range e.counted {
		all = append(all, c.Name)
	}
	for _, s := range e.said {
		if s.Terms != nil {
			all = append(all, s.Name)
		}
	}
	return strings.Join(all, ", ")
}

// plus adds, and stays at the end of the numbers there are: counts of a profile
// that exceed them are made up.
func plus(a, b int64) int64 {
	s := a + b
	if (a^s)&(b^s) < 0 {
		if a < 0 {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return s
}

// times multiplies likewise.
func times(a, b int64) int64 {
	p := a * b
	if a != 0 && (p/a != b || a == -1 && b == math.MinInt64) {
		if (a < 0) != (b < 0) {
			return math.MinInt64
		}
		return math.MaxInt64
	}
	return p
}

// add adds the costs b to a.
func add(a, b []int64) {
	for i, n := range b {
		a[i] = plus(a[i], n)
	}
}
