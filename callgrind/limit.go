package callgrind

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
)

// A Limit is a bound on a cost: of a function, of an object, or of the whole profile.
type Limit struct {
	text string // the limit as given

	function string // demangled or linkage name; empty for the total, or with an object
	self     bool   // the limit is for the function's own cost, not the inclusive cost
	object   string // base name, for the own costs of an object's functions; or empty
	event    string

	relative bool  // the bound is a change in percent
	bound    int64 // a count, or with relative a percentage times 10^places
	places   int
}

// maxPlaces bounds the decimal places of a percentage.
const maxPlaces = 6

// ParseLimit parses a limit: [SCOPE:]EVENT=BOUND. SCOPE is FUNCTION for the inclusive cost of a
// function, or FUNCTION.self for its own cost. [OBJECT] is the cost of an object's functions.
// Without SCOPE, the limit is for the total. BOUND is a count, such as 10000, 700k, 1.5M or 2G, or
// a change in percent, such as +5%. A negative change is a required decrease: with -5%, the cost
// may be at most 95% of the cost before.
func ParseLimit(text string) (Limit, error) {
	l := Limit{text: text}
	at := strings.LastIndexByte(text, '=')
	if at < 0 {
		return l, fmt.Errorf("%q has no bound: write [FUNCTION:]EVENT=BOUND, such as Ir=+1%% or main:Ir=700k", text)
	}
	l.event = text[:at]
	if i := strings.LastIndexByte(l.event, ':'); i >= 0 {
		l.function, l.event = l.event[:i], l.event[i+1:]
		object, isObject := strings.CutPrefix(l.function, "[")
		object, closed := strings.CutSuffix(object, "]")
		switch {
		case isObject && closed:
			l.function, l.object = "", object
		default:
			l.function, l.self = strings.CutSuffix(l.function, ".self")
		}
		if l.function == "" && l.object == "" {
			return l, fmt.Errorf("%q has no function before the colon", text)
		}
	}
	if l.event == "" || strings.ContainsAny(l.event, "= ,") {
		return l, fmt.Errorf("%q names no event, such as Ir", text)
	}
	if err := l.parseBound(text[at+1:]); err != nil {
		return l, fmt.Errorf("%q: %w", text, err)
	}
	return l, nil
}

func (l *Limit) parseBound(s string) error {
	fail := fmt.Errorf("the bound %q is neither a count, such as 10000 or 700k, nor a change, such as +5%%", s)
	number, percent := strings.CutSuffix(s, "%")
	l.relative = percent
	sign := int64(1)
	switch {
	case strings.HasPrefix(number, "+") && percent:
		number = number[1:]
	case strings.HasPrefix(number, "-") && percent:
		number, sign = number[1:], -1
	}
	unit := 0 // decimal places
	if n := len(number); !percent && n > 0 {
		if unit = map[byte]int{'k': 3, 'K': 3, 'M': 6, 'G': 9}[number[n-1]]; unit > 0 {
			number = number[:n-1]
		}
	}
	whole, fraction, dotted := strings.Cut(strings.ReplaceAll(number, ",", ""), ".")
	if percent {
		unit = min(len(fraction), maxPlaces)
		l.places = unit
	}
	if whole == "" || dotted && fraction == "" || len(fraction) > unit || strings.Trim(whole+fraction, "0123456789") != "" {
		return fail
	}
	n, err := strconv.ParseInt(whole+fraction+strings.Repeat("0", unit-len(fraction)), 10, 64)
	if err != nil || percent && n > math.MaxInt32 {
		return fail
	}
	l.bound = sign * n
	return nil
}

// holds reports whether a cost is within the limit. A change is relative to before.
func (l *Limit) holds(before, after int64) bool {
	if !l.relative {
		return after <= l.bound
	}
	// (after - before) * 100 * 10^places <= |before| * bound, in 128 bits
	scale := uint64(100)
	for range l.places {
		scale *= 10
	}
	more, difference := after >= before, distance(before, after)
	switch {
	case more && l.bound < 0:
		return difference == 0 && before == 0
	case !more && l.bound >= 0:
		return true
	}
	left, leftLow := bits.Mul64(difference, scale)
	right, rightLow := bits.Mul64(distance(0, before), distance(0, l.bound))
	less := left < right || left == right && leftLow <= rightLow
	equal := left == right && leftLow == rightLow
	if more {
		return less
	}
	return !less || equal // a decrease that is at least as large as the limit requires
}

// distance returns the absolute difference of two numbers.
func distance(a, b int64) uint64 {
	if a > b {
		a, b = b, a
	}
	return uint64(b) - uint64(a)
}

// IsChange reports whether the bound is a change in percent, which only a [Comparison] can check.
func (l Limit) IsChange() bool { return l.relative }

// String returns the limit as it was given.
func (l Limit) String() string { return l.text }
