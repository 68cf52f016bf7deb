package callgrind

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A selection chooses parts of a profile, by their numbers or by their threads.
type selection struct {
	parts, threads []int // Options.Parts and Options.Threads

	// The current part.
	position int  // number of the part in its document, from 1
	part     int  // number in the part: line; 0 without one
	thread   int  // number in the thread: line; 0 without one
	taken    bool // a part was chosen

	// numbers of parts and threads so far, at most maxListedParts of each
	seenParts, seenThreads []int
}

// maxListedParts bounds the numbers that the message about a missing part lists.
const maxListedParts = 64

// some reports whether parts or threads are selected.
func (s *selection) some() bool { return len(s.parts)+len(s.threads) > 0 }

// takes reports whether the report needs a record: one of a chosen part, the beginning of any part,
// or a header line other than summary: and totals:. It must get all records of a report, in order.
func (s *selection) takes(rec *record) bool {
	if !s.some() {
		return true
	}
	switch rec.Kind {
	case documentRecord:
		s.position = 0
		fallthrough
	case partRecord:
		s.position++
		s.part, s.thread = 0, 0
		return true
	case headerRecord:
		switch string(rec.Key) {
		case "part":
			s.part = number32(rec.Value)
			return true
		case "thread":
			s.thread = number32(rec.Value)
			return true
		case "summary", "totals":
		default:
			return true
		}
	}
	part := cmp.Or(s.part, s.position)
	see(&s.seenParts, part)
	see(&s.seenThreads, s.thread)
	ok := (len(s.parts) == 0 || slices.Contains(s.parts, part)) && (len(s.threads) == 0 || slices.Contains(s.threads, s.thread))
	s.taken = s.taken || ok
	return ok
}

// number32 parses the number of a part or a thread. It returns 0 for other text.
func number32(b []byte) int {
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b[:min(len(b), 32)])), 10, 32)
	if err != nil {
		return 0
	}
	return int(n)
}

// see adds a number to a sorted set, unless the set is full.
func see(all *[]int, n int) {
	if i, ok := slices.BinarySearch(*all, n); !ok && len(*all) < maxListedParts {
		*all = slices.Insert(*all, i, n)
	}
}

// A PartError reports that Options.Parts and Options.Threads select no part of the profile.
type PartError struct{ Err error }

func (e *PartError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *PartError) Unwrap() error { return e.Err }

// missing reports whether the profile has parts, but none was chosen. If so, it sets *err to a
// [PartError].
func (s *selection) missing(err *error) bool {
	if !s.some() || s.taken || len(s.seenParts) == 0 {
		return false
	}
	var wanted, has []string
	add := func(what string, want, seen []int) {
		if len(want) > 0 {
			wanted = append(wanted, what+" "+numbers(want))
		}
		switch seen = slices.DeleteFunc(slices.Clone(seen), func(n int) bool { return n == 0 }); {
		case len(seen) == 1:
			has = append(has, what+" "+numbers(seen))
		case len(seen) > 1:
			has = append(has, what+"s "+numbers(seen))
		case len(want) > 0:
			has = append(has, "no "+what+" with a number")
		}
	}
	add("part", s.parts, s.seenParts)
	add("thread", s.threads, s.seenThreads)
	*err = &PartError{fmt.Errorf("the profile has no costs of %s; it has %s", strings.Join(wanted, " and "), strings.Join(has, " and "))}
	return true
}

// numbers joins numbers with commas.
func numbers(all []int) string {
	words := make([]string, len(all))
	for i, n := range all {
		words[i] = strconv.Itoa(n)
	}
	return strings.Join(words, ",")
}

// dropPart removes the data of a part that was not chosen.
func (r *Report) dropPart() {
	r.m.head.endPart()
	if r.again != nil { // keep the whole profile's header lines
		r.again.lines = slices.DeleteFunc(r.again.lines, func(l headerLine) bool {
			return !slices.Contains([]string{"version", "creator", "pid", "cmd"}, l.key)
		})
	}
}
