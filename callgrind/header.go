package callgrind

import (
	"bytes"
	"slices"
	"strings"
)

// header reads "key: value". A key that a part begins with ends the part before
// it; sums belong to the part at work.
func (r *Reader) header(line, key, value []byte) error {
	k := string(key)
	value = bytes.TrimLeft(value, " \t")
	if len(value) > maxValue && k != "events" {
		r.complain("is too long", "is longer than the %d bytes of a header that are kept", maxValue)
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
		r.pass() // it may be the line of a log as well
	}
	if err := r.begins(k); err != nil {
		return err
	}
	switch k {
	case "positions":
		r.layout(value)
	case "event":
		ev, err := parseEvent(string(value))
		if err != nil {
			r.complain("none", "defines no event: %v", err)
		} else if !r.ev.say(ev) {
			r.complain("extra", "defines one event too many: there are %d", maxEvents)
		}
	case "events":
		if !r.placed {
			r.layout([]byte("line"))
		}
		r.count(strings.Fields(string(value)))
	}
	r.rec.Key, r.rec.Value = key, value
	return r.give(Header)
}

// headerKeys are the keys that the format's description has.
var headerKeys = []string{"version", "creator", "pid", "cmd", "part", "thread", "desc", "positions", "event", "events"}

// isWord reports whether b may be a key that is not known.
func isWord(b []byte) bool {
	for _, c := range b {
		if c|0x20-'a' >= 26 && c != '_' && c != '-' {
			return false
		}
	}
	return len(b) > 0
}

// begins begins a document or a part where a header's line does.
func (r *Reader) begins(key string) error {
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
		if err := r.give(Part); err != nil {
			return err
		}
	}
	r.numbered = r.numbered || key == "part"
	return nil
}

// layout takes what "positions:" says: the numbers before the costs.
func (r *Reader) layout(value []byte) {
	words := strings.Fields(string(value))
	if len(words) == 0 || len(words) > maxPositions {
		r.complain("none", "says that a place has %d numbers; it is taken to have a line", len(words))
		words = []string{"line"}
	}
	r.placed = true
	r.positions, r.addr, r.at = len(words), -1, -1
	for i, w := range words {
		switch w {
		case "instr", "addr":
			r.addr = i
		case "line":
			r.at = i
		}
	}
	r.last = Position{}
}

// count takes what "events:" says: the costs of each line.
func (r *Reader) count(names []string) {
	r.columns = make([]int, 0, min(len(names), maxEvents))
	for _, name := range names {
		if len(r.columns) == maxEvents {
			r.complain("extra", "names more than %d events", maxEvents)
			break
		}
		c := -1
		if len(name) <= maxKey*4 {
			c = r.ev.column(name)
		}
		if c < 0 {
			r.complain("extra", "names one event too many: there are %d in all", maxEvents)
		}
		r.columns = append(r.columns, c)
	}
	r.costs = make([]int64, len(r.ev.counted))
}

// assume begins a part that has no header.
func (r *Reader) assume() error {
	if r.documents == 0 {
		if err := r.newDocument(); err != nil {
			return err
		}
	}
	r.body = true
	r.complain("none", "comes before any events: line; its costs are called %s", assumed)
	r.count([]string{assumed})
	return nil
}

// assumed is the event of a profile that names none.
const assumed = "Cost"

// sums reads the costs of a part, or of all of it.
func (r *Reader) sums(key string, value []byte) error {
	if r.columns == nil {
		return nil // not known of what
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
	return r.give(Header)
}
