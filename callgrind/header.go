package callgrind

import (
	"bytes"
	"slices"
	"strings"
)

// header reads "key: value". A key that begins a part ends the preceding part. Lines with sums
// belong to the current part.
func (r *recordReader) header(line, key, value []byte) error {
	k := string(key)
	value = bytes.TrimLeft(value, " \t")
	if len(value) > maxValue && k != "events" {
		r.complain("is too long", "is a header line of more than %d bytes; the excess is left out", maxValue)
		value = value[:maxValue]
	}
	if k == "summary" || k == "totals" {
		return r.sums(k, value)
	}
	known := slices.Contains(headerKeys, k)
	if !known && (r.body || !isWord(key)) {
		r.bad(line)
		return nil
	}
	if !known {
		r.pass() // the line may also be a line of a log
	}
	if err := r.startPart(k); err != nil {
		return err
	}
	switch k {
	case "version":
		if v := string(bytes.TrimSpace(value)); v != "1" {
			r.complain("version", "has version %.20q of the format; the profile is read as version 1, the only known version", v)
		}
	case "positions":
		r.setPositions(value)
	case "event":
		ev, err := parseEvent(string(value))
		if err != nil {
			r.complain("none", "defines no event: %v", err)
		} else if !r.ev.define(ev) {
			r.complain("extra", "defines more than %d events", maxEvents)
		}
	case "events":
		if !r.placed {
			r.setPositions([]byte("line"))
		}
		if r.named {
			r.complain("events", "is a second events: line in the header of a part; it replaces the first")
		}
		r.named = true
		r.setColumns(strings.Fields(string(value)))
	}
	r.rec.Key, r.rec.Value = key, value
	return r.give(headerRecord)
}

// headerKeys are the keys in the format's description.
var headerKeys = []string{"version", "creator", "pid", "cmd", "part", "thread", "desc", "positions", "event", "events"}

// isWord reports whether b may be a key: letters, _ and -.
func isWord(b []byte) bool {
	for _, c := range b {
		if c|0x20-'a' >= 26 && c != '_' && c != '-' {
			return false
		}
	}
	return len(b) > 0
}

// startPart begins a document or a part, if this key begins one.
func (r *recordReader) startPart(key string) error {
	switch {
	case r.documents == 0:
		return r.newDocument()
	case !r.body && !r.summed && (key != "part" || !r.numbered):
	case key == "version" || key == "creator":
		if err := r.newDocument(); err != nil {
			return err
		}
	default:
		r.newPart()
		if err := r.give(partRecord); err != nil {
			return err
		}
	}
	r.numbered = r.numbered || key == "part"
	return nil
}

// setPositions reads the value of "positions:", the kinds of numbers before the costs of a line.
func (r *recordReader) setPositions(value []byte) {
	words := strings.Fields(string(value))
	if len(words) == 0 || len(words) > maxPositions {
		r.complain("none", "lists %d kinds of position numbers; only a line number is read before the costs", len(words))
		words = []string{"line"}
	}
	r.placed = true
	r.positions, r.addrIndex, r.lineIndex = len(words), -1, -1
	for i, w := range words {
		switch w {
		case "instr", "addr":
			r.addrIndex = i
		case "line":
			r.lineIndex = i
		}
	}
	r.last = codePosition{}
}

// setColumns reads the value of "events:", the events of the costs of each line.
func (r *recordReader) setColumns(names []string) {
	r.columns = make([]int, 0, min(len(names), maxEvents))
	for _, name := range names {
		if len(r.columns) == maxEvents {
			r.complain("extra", "names more than %d events", maxEvents)
			break
		}
		c := -1
		if len(name) > maxEventName {
			r.complain("extra", "has an event name longer than %d bytes; the costs of this event are left out", maxEventName)
		} else if c = r.ev.column(name); c < 0 {
			r.complain("extra", "exceeds the limit of %d events in the profile", maxEvents)
		}
		r.columns = append(r.columns, c)
	}
	r.costs = make([]int64, len(r.ev.counted))
}

// assume is called for costs before any events: line. It reports them, and gives the profile one
// event with the name assumed.
func (r *recordReader) assume() error {
	if r.documents == 0 {
		if err := r.newDocument(); err != nil {
			return err
		}
	}
	r.body = true
	r.complain("none", "has costs before any events: line; their event is called %s", assumed)
	r.setColumns([]string{assumed})
	return nil
}

// assumed is the name given to the event of a profile that names no events.
const assumed = "Cost"

// sums reads the costs of a part ("totals:") or of the whole profile ("summary:").
func (r *recordReader) sums(key string, value []byte) error {
	if r.columns == nil {
		return nil // the events of the costs are unknown
	}
	clear(r.costs)
	column := 0
	for w := range bytes.FieldsSeq(value) {
		n, _, ok := number(w, 0)
		if column < len(r.columns) && ok && r.columns[column] >= 0 {
			r.costs[r.columns[column]] = n
		}
		column++
	}
	r.summed = r.summed || key == "totals"
	r.rec.Costs = r.costs
	r.rec.Key, r.rec.Value = []byte(key), value
	return r.give(headerRecord)
}
