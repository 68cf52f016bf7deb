package rtrace

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// filters are what a header may say was done to a report, in their order.
var filters = [...]string{"leaks", "compress", "resolve"}

// byteOrderMark may begin a file of Windows.
const byteOrderMark = "\xef\xbb\xbf"

// header says in a report's header what is done.
func (p *processor) header(rec *Record) {
	compressed := bytes.Contains(rec.Field("filter"), []byte("compress"))
	p.kept.later = compressed && p.keeps()
	h := newHeader(rec)
	if p.keeps() {
		if p.Leaks {
			h.filter("leaks", true)
		}
		h.filter("compress", p.Compress)
	}
	if p.Depth != nil {
		depth := uint64(max(0, *p.Depth))
		if was, ok := decimal(rec.Field("backtrace depth")); !ok || was > depth {
			h.set("backtrace depth", strconv.FormatUint(depth, 10))
		}
	}
	h.into(rec)
}

// A header is one that is changed: the rest of it stays as it is written.
type header struct {
	before    string
	fields    []Field
	separator string
	tail      []byte // behind the last value
	changed   bool
}

func newHeader(rec *Record) *header {
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

func cloneFields(fields []Field) (clone []Field) {
	for _, f := range fields {
		clone = append(clone, Field{bytes.Clone(f.Key), bytes.Clone(f.Value)})
	}
	return clone
}

// filters returns what the header says was done to the report.
func (h *header) filters() (all []string) {
	for _, f := range h.fields {
		if string(f.Key) == "filter" && len(f.Value) > 0 {
			all = append(all, strings.Split(string(f.Value), "|")...)
		}
	}
	return all
}

// filter makes the header say that something was done to the report, or that it
// was not.
func (h *header) filter(name string, done bool) {
	said := h.filters()
	if slices.Contains(said, name) == done {
		return
	}
	var all []string
	for _, f := range filters {
		if f == name && done || f != name && slices.Contains(said, f) {
			all = append(all, f)
		}
	}
	for _, f := range said { // what we do not know
		if !slices.Contains(filters[:], f) {
			all = append(all, f)
		}
	}
	h.set("filter", strings.Join(all, "|"))
}

// set gives a field a value; none takes it out. One that is new comes where
// sp-rtrace has it.
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
		h.fields = slices.Insert(h.fields, at, Field{[]byte(key), []byte(value)})
	}
}

// rank returns the place of a key in the order of headers.
func rank(key []byte) int {
	if i := slices.Index(keys[:], string(key)); i >= 0 {
		return i
	}
	return len(keys)
}

// into puts the changed header into its record.
func (h *header) into(rec *Record) {
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
