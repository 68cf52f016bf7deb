package rtrace

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// filters are the processing steps in a header, in order.
var filters = [...]string{"leaks", "compress", "resolve"}

// byteOrderMark may begin a file written on Windows.
const byteOrderMark = "\xef\xbb\xbf"

// header adds the selected steps to the header of a report. It also sets kept.unordered, if calls
// are kept and the report was already compressed: the calls of such a report are not in the order
// of time.
func (p *processor) header(rec *record) {
	compressed := bytes.Contains(rec.headerValue("filter"), []byte("compress"))
	p.kept.unordered = compressed && p.keeps()
	h := newHeader(rec)
	if p.keeps() {
		if p.Leaks {
			h.setFilter("leaks", true)
		}
		h.setFilter("compress", p.Compress)
	}
	if p.Depth != nil {
		depth := uint64(max(0, *p.Depth))
		if was, ok := decimal(rec.headerValue("backtrace depth")); !ok || was > depth {
			h.set("backtrace depth", strconv.FormatUint(depth, 10))
		}
	}
	h.store(rec)
}

// A header is a report's header that is being changed. Values that are not changed keep their
// spelling.
type header struct {
	before    string
	fields    []headerField
	separator string
	tail      []byte // text after the last value
	changed   bool
}

func newHeader(rec *record) *header {
	text := bytes.TrimRight(rec.Raw, " ,\t\r\n")
	h := &header{tail: rec.Raw[len(text):], separator: ", "}
	if n := len(rec.Fields); n > 1 && !bytes.Contains(text, []byte(", ")) {
		h.separator = ","
	}
	if bytes.HasPrefix(text, []byte(byteOrderMark)) {
		h.before = byteOrderMark
	}
	h.fields = cloneFields(rec.Fields)
	return h
}

func cloneFields(fields []headerField) (clone []headerField) {
	for _, f := range fields {
		clone = append(clone, headerField{bytes.Clone(f.Key), bytes.Clone(f.Value)})
	}
	return clone
}

func (h *header) filters() (all []string) {
	for _, f := range h.fields {
		if string(f.Key) == "filter" && len(f.Value) > 0 {
			all = append(all, strings.Split(string(f.Value), "|")...)
		}
	}
	return all
}

// setFilter adds a step of processing to the header if done is set, and otherwise removes the step.
func (h *header) setFilter(name string, done bool) {
	listed := h.filters()
	if slices.Contains(listed, name) == done {
		return
	}
	var all []string
	for _, f := range filters {
		if f == name && done || f != name && slices.Contains(listed, f) {
			all = append(all, f)
		}
	}
	for _, f := range listed { // unknown steps are kept
		if !slices.Contains(filters[:], f) {
			all = append(all, f)
		}
	}
	h.set("filter", strings.Join(all, "|"))
}

// set sets a field, or removes it if value is empty. It inserts a new field in sp-rtrace's order of
// keys.
func (h *header) set(key, value string) {
	h.changed = true
	at := 0
	for i, f := range h.fields {
		if string(f.Key) == key {
			if value == "" {
				h.fields = slices.Delete(h.fields, i, i+1)
			} else {
				h.fields[i].Value = []byte(value)
			}
			return
		}
		if rank(f.Key) < rank([]byte(key)) {
			at = i + 1
		}
	}
	if value != "" {
		h.fields = slices.Insert(h.fields, at, headerField{[]byte(key), []byte(value)})
	}
}

// rank returns the position of a key in the order of headers. Unknown keys rank last.
func rank(key []byte) int {
	if i := slices.Index(keys[:], string(key)); i >= 0 {
		return i
	}
	return len(keys)
}

// store stores the changed header in its record.
func (h *header) store(rec *record) {
	if !h.changed {
		return
	}
	line := []byte(h.before)
	for i, f := range h.fields {
		if i > 0 {
			line = append(line, h.separator...)
		}
		line = append(append(append(line, f.Key...), '='), f.Value...)
	}
	rec.Raw = append(line, h.tail...)
	rec.Fields = h.fields
}
