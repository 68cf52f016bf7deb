package callgrind

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/stacks"
)

// An eventType is an event that a profile counts, or that is calculated from other events.
type eventType struct {
	Name string // such as Ir
	Long string // such as Instruction Fetches; may be empty

	// Terms define a calculated event; nil for a counted event.
	Terms   []eventTerm
	Formula string // Terms, as the profile writes them
}

// An eventTerm is a term of a sum: a factor and an event.
type eventTerm struct {
	Factor int64
	Event  string
}

// parseEvent parses the text after "event:": NAME [= FORMULA] [: LONG].
func parseEvent(s string) (e eventType, err error) {
	def, long, _ := strings.Cut(s, ":")
	e.Long = strings.TrimSpace(long)
	name, formula, derived := strings.Cut(def, "=")
	e.Name = strings.TrimSpace(name)
	if e.Name == "" || strings.ContainsAny(e.Name, " \t") {
		return e, fmt.Errorf("%q is not the name of an event", s)
	}
	if derived {
		e.Formula = strings.TrimSpace(formula)
		e.Terms, err = parseFormula(e.Formula)
	}
	return e, err
}

// parseFormula parses a sum of events with optional factors: "2 Ir + 3*Dr".
func parseFormula(s string) (terms []eventTerm, err error) {
	for part := range strings.SplitSeq(s, "+") {
		t := eventTerm{Factor: 1}
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
				return nil, fmt.Errorf("%q is not a number", rest[:digits])
			}
			rest = strings.TrimLeft(rest[digits:], " \t")
			rest = strings.TrimLeft(strings.TrimPrefix(rest, "*"), " \t")
		}
		t.Event = strings.TrimSpace(rest)
		if t.Event == "" || strings.ContainsAny(t.Event, " \t*=,") || len(terms) == maxTerms {
			return nil, fmt.Errorf("%q is not a sum of events such as 2 Ir + Dr", s)
		}
		terms = append(terms, t)
	}
	return terms, nil
}

// events holds the events of all parts of a profile. counted has the events that are counted,
// in order of appearance. defined has the definitions of "event:" lines.
type events struct {
	counted []eventType
	defined []eventType
}

// column returns the index of a counted event, added if new. It returns -1 if there are too many
// events.
func (e *events) column(name string) int {
	i := slices.IndexFunc(e.counted, func(c eventType) bool { return c.Name == name })
	if i >= 0 {
		return i
	}
	if len(e.counted) == maxEvents {
		return -1
	}
	c := eventType{Name: name}
	for _, s := range e.defined {
		if s.Name == name && s.Terms == nil {
			c.Long = s.Long
		}
	}
	e.counted = append(e.counted, c)
	return len(e.counted) - 1
}

// define adds the definition of an "event:" line. It returns false if there are too many
// definitions.
func (e *events) define(ev eventType) bool {
	for i := range e.counted {
		if e.counted[i].Name == ev.Name && ev.Terms == nil && ev.Long != "" {
			e.counted[i].Long = ev.Long
		}
	}
	if i := slices.IndexFunc(e.defined, func(s eventType) bool { return s.Name == ev.Name }); i >= 0 {
		e.defined[i] = ev
		return true
	}
	if len(e.defined) == maxEvents {
		return false
	}
	e.defined = append(e.defined, ev)
	return true
}

// derived returns the calculated events whose formulas use only known events.
func (e *events) derived() (all []eventType) {
	for _, s := range e.defined {
		if s.Terms != nil && !slices.ContainsFunc(e.counted, func(c eventType) bool { return c.Name == s.Name }) {
			if _, err := e.weights(s); err == nil {
				all = append(all, s)
			}
		}
	}
	return all
}

func (e *events) find(name string) (eventType, bool) {
	for _, all := range [][]eventType{e.counted, e.defined} {
		if i := slices.IndexFunc(all, func(c eventType) bool { return c.Name == name }); i >= 0 {
			return all[i], true
		}
	}
	return eventType{}, false
}

// weights returns the factor of each counted event in the cost of ev. The formula of ev may use
// calculated events.
func (e *events) weights(ev eventType) ([]int64, error) {
	work := 16 * maxEvents
	return e.weigh(ev, nil, &work)
}

func (e *events) weigh(ev eventType, within []string, work *int) ([]int64, error) {
	w := make([]int64, len(e.counted))
	i := slices.IndexFunc(e.counted, func(c eventType) bool { return c.Name == ev.Name })
	switch {
	case ev.Terms == nil && i >= 0:
		w[i] = 1
		return w, nil
	case ev.Terms == nil:
		return nil, fmt.Errorf("the profile has no event %s; its events are %s", ev.Name, e.list())
	case slices.Contains(within, ev.Name):
		return nil, fmt.Errorf("event %s is defined in terms of itself", ev.Name)
	}
	within = append(within, ev.Name)
	for _, t := range ev.Terms {
		if *work--; *work < 0 {
			return nil, fmt.Errorf("event %s depends on too many other events", ev.Name)
		}
		part, ok := e.find(t.Event)
		if !ok {
			return nil, fmt.Errorf("event %s: the profile has no event %s; its events are %s", ev.Name, t.Event, e.list())
		}
		pw, err := e.weigh(part, within, work)
		if err != nil {
			return nil, err
		}
		for i := range w {
			w[i] = stacks.Plus(w[i], stacks.Times(pw[i], t.Factor))
		}
	}
	return w, nil
}

// list returns the names of all events, for an error message.
func (e *events) list() string {
	if len(e.counted) == 0 {
		return "none"
	}
	var all []string
	for _, c := range e.counted {
		all = append(all, c.Name)
	}
	for _, s := range e.defined {
		if s.Terms != nil {
			all = append(all, s.Name)
		}
	}
	return strings.Join(all, ", ")
}
