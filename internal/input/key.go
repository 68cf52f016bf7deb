package input

import (
	"bytes"
	"slices"
	"strings"
)

// KeyBy sets the members whose values name a record's process. Each process has its own modules and
// maps. Records without any of the members share a process. The members have the form of
// [DefaultFields]; in a journal entry they are names of fields. A log without records has one
// process. KeyBy must be called before the first Write, and before Restore.
func (e *Envelope) KeyBy(members ...string) {
	e.keys.names = members
	e.enter(nil)
}

// enter makes the filter use the process of the next lines. The key of record selects the process.
func (e *Envelope) enter(record []byte) {
	if len(e.keys.names) == 0 {
		return
	}
	if e.format == Journal && len(record) > 0 && record[0] != '{' {
		e.key = journalKey(e.key[:0], record, e.keys.names)
	} else {
		e.key = e.keys.append(e.key[:0], record)
	}
	e.f.Enter(e.key)
}

// keyBlank separates the values of a key.
const keyBlank = ' '

var escapedBlanks = strings.NewReplacer(" ", `\ `, `\`, `\\`)

// A keyReader reads the keys of lines of JSON. It reuses its memory.
type keyReader struct {
	names  []string // members of the key
	values [][2]int // see jsonScan
	path   []byte
}

// append appends the key of a line: the values of the members, in their order, with blanks between.
// A value other than a string has its JSON form. The key is empty if the line is not a JSON object,
// or has none of the members.
func (k *keyReader) append(dst, line []byte) []byte {
	if len(k.names) == 0 {
		return dst
	}
	s := jsonScan{b: line, path: k.path[:0]}
	k.begin(&s)
	ok := s.line()
	k.path = s.path
	if !ok {
		return dst
	}
	return k.found(dst, line)
}

// begin prepares s, a new jsonScan: the scan will record the positions of the members' values in
// k.values.
func (k *keyReader) begin(s *jsonScan) {
	if k.values == nil {
		k.values = make([][2]int, len(k.names))
	}
	clear(k.values)
	s.keys, s.values = k.names, k.values
}

// found appends the key of the line that was read by the jsonScan passed to begin.
func (k *keyReader) found(dst, line []byte) []byte {
	return appendKey(dst, len(k.names), func(dst []byte, i int) []byte {
		from, to := k.values[i][0], k.values[i][1]
		if from == 0 || line[from-1] != '"' {
			return append(dst, line[from:to]...)
		}
		dst, _ = unquote(dst, line[from:to])
		return dst
	})
}

// appendKey appends n values, separated by blanks, or nothing if all are empty. value appends the
// value with the index i. If n is more than 1, blanks and backslashes in the values are escaped,
// since different values must have different keys.
func appendKey(dst []byte, n int, value func(dst []byte, i int) []byte) []byte {
	start := len(dst)
	empty := true
	for i := range n {
		if i > 0 {
			dst = append(dst, keyBlank)
		}
		had := len(dst)
		dst = value(dst, i)
		empty = empty && len(dst) == had
		if n > 1 && bytes.ContainsAny(dst[had:], ` \`) {
			dst = append(dst[:had], escapedBlanks.Replace(string(dst[had:]))...)
		}
	}
	if empty {
		return dst[:start]
	}
	return dst
}

// noteKey records the value that ends at s.at, if its member is in keys. If several members have
// one name, the last one wins, as in most JSON readers.
func (s *jsonScan) noteKey(from int) {
	for i, name := range s.keys {
		if string(s.path) != name {
			continue
		}
		to := s.at
		if s.b[from] == '"' {
			from, to = from+1, to-1
		}
		s.values[i] = [2]int{from, to}
		return
	}
}

// journalKey is keyReader.append for an entry of a journal.
func journalKey(dst, entry []byte, names []string) []byte {
	values := make([][]byte, len(names))
	for at := 0; at < len(entry); {
		n, _, _, end := fieldLength(entry[at:], 0)
		if n == 0 || end {
			break
		}
		name, value := fieldValue(entry[at : at+n])
		if i := slices.Index(names, string(name)); i >= 0 {
			values[i] = value
		}
		at += n
	}
	return appendKey(dst, len(names), func(dst []byte, i int) []byte { return append(dst, bytes.TrimSpace(values[i])...) })
}
