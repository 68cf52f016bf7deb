package input

import (
	"bytes"
	"slices"
	"strconv"
	"strings"
)

// DefaultFields returns the members of a JSON line that are filtered by default: the messages of
// Docker, zap, logrus, bunyan, ECS, OpenTelemetry, Logstash and journald. A dot separates the names
// of nested members, and may also be part of a name.
func DefaultFields() []string {
	return []string{"message", "msg", "log", "MESSAGE", "stack", "stack_trace", "exception.stacktrace", "error.stack", "error.stack_trace"}
}

const maxDepth = 64 // levels of objects and arrays in a line; deeper lines are not filtered

// A jsonScan reads one line of JSON, and finds the values to filter. It accepts the same objects as
// encoding/json, to a depth of maxDepth.
type jsonScan struct {
	b      []byte
	at     int
	names  []string
	path   []byte // names of the members around at, with dots
	arrays int    // number of arrays around at, whose elements have no name
	fields []field
	text   []byte // concatenated texts of the fields
	begun  bool   // the value of a field has at least begun
	deep   bool   // the line has more than maxDepth levels

	keys   []string // members whose values are in values
	values [][2]int // offsets of their values in b, without quotes, by index in keys
}

// jsonFields appends to fields, in order, the values in line that are to be filtered. Their text is
// in buf. It returns false if the line is not a JSON object. If the line has no such value, or is a
// MongoDB line with a backtrace, the whole line is one field. If the line is nested too deeply, it
// is one field with the text notFiltered.
func jsonFields(fields []field, line []byte, names []string, buf *[]byte) (found []field, ok bool) {
	s := jsonScan{b: line, names: names, fields: fields, text: (*buf)[:0]}
	return s.found(buf)
}

// found implements jsonFields for a new jsonScan.
func (s *jsonScan) found(buf *[]byte) (found []field, ok bool) {
	fields, line := s.fields, s.b
	ok = s.line()
	*buf = s.text
	switch {
	case s.deep && len(fields) == 0:
		return append(fields, field{to: len(line), form: wholeLine, text: []byte(notFiltered)}), true
	case !ok:
		return fields, false
	}
	whole := len(s.fields) == len(fields)
	for _, f := range s.fields[len(fields):] {
		whole = whole || string(f.text) == mongoTrace || string(f.text) == mongoFrame
	}
	if whole {
		return append(fields, field{to: len(line), form: wholeLine, text: line}), true
	}
	return s.fields, true
}

// Messages of MongoDB whose frames are members beside the message. The filter adds names to the
// objects of the frames.
const (
	mongoTrace = "BACKTRACE"
	mongoFrame = "Frame"
)

// beginsJSON reports whether b may begin a line of JSON with a field, and whether the value of a
// field has begun.
func beginsJSON(b []byte, names []string) (may, has bool) {
	s := jsonScan{b: b, names: names}
	whole := s.line()
	return whole && len(s.fields) > 0 || s.at >= len(b), s.begun
}

// line reads the line, and reports whether it is one valid object.
func (s *jsonScan) line() bool {
	s.blanks()
	if !s.next('{') || !s.object(1) {
		return false
	}
	s.blanks()
	return s.at == len(s.b)
}

func (s *jsonScan) blanks() {
	for s.at < len(s.b) && strings.IndexByte(" \t\r\n", s.b[s.at]) >= 0 {
		s.at++
	}
}

// next reads the next byte if it is c, and reports whether it is.
func (s *jsonScan) next(c byte) bool {
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

// object reads an object after its opening brace.
func (s *jsonScan) object(depth int) bool {
	if s.blanks(); s.next('}') {
		return true
	}
	outside := len(s.path)
	for {
		s.blanks()
		if !s.next('"') {
			return false
		}
		from := s.at
		if !s.str() {
			return false
		}
		name := s.b[from : s.at-1]
		if s.blanks(); !s.next(':') {
			return false
		}
		if outside > 0 {
			s.path = append(s.path, '.')
		}
		s.path = append(s.path, name...)
		s.blanks()
		from = s.at
		if !s.value(depth) {
			return false
		}
		if len(s.keys) > 0 && s.arrays == 0 {
			s.noteKey(from)
		}
		s.path = s.path[:outside]
		if s.blanks(); s.next('}') {
			return true
		}
		if !s.next(',') {
			return false
		}
	}
}

// array reads an array after its opening bracket. bytes holds the elements if all of them are
// numbers below 256.
func (s *jsonScan) array(depth int) (bytes []byte, ok bool) {
	if s.blanks(); s.next(']') {
		return nil, true
	}
	all := true
	for {
		s.blanks()
		from := s.at
		if !s.value(depth) {
			return nil, false
		}
		if n, err := strconv.ParseUint(string(s.b[from:min(s.at, from+4)]), 10, 8); all && err == nil {
			bytes = append(bytes, byte(n))
		} else {
			all, bytes = false, nil
		}
		if s.blanks(); s.next(']') {
			return bytes, true
		}
		if !s.next(',') {
			return nil, false
		}
	}
}

// value reads a value, within depth objects and arrays.
func (s *jsonScan) value(depth int) bool {
	s.blanks()
	if s.deep = s.deep || depth > maxDepth; s.at == len(s.b) || s.deep {
		return false
	}
	name := -1
	if s.arrays == 0 {
		name = slices.Index(s.names, string(s.path))
	}
	wanted := name >= 0
	from := s.at
	s.at++
	switch s.b[from] {
	case '{':
		return s.object(depth + 1)
	case '[':
		s.arrays++
		array, ok := s.array(depth + 1)
		s.arrays--
		if ok && wanted && len(array) > 0 && string(s.path) == message {
			n := len(s.text)
			s.text = append(s.text, array...)
			s.add(field{name: message, from: from, to: s.at, form: byteArray}, n)
			s.begun = true
		}
		return ok
	case '"':
		s.begun = s.begun || wanted
		if !s.str() {
			return false
		}
		if wanted && s.at-from > 2 {
			n := len(s.text)
			s.text, _ = unquote(s.text, s.b[from+1:s.at-1])
			form := jsonString
			if bytes.Contains(s.b[from:s.at], []byte(`\u003`)) {
				form = htmlString
			}
			s.add(field{name: s.names[name], from: from + 1, to: s.at - 1, form: form}, n)
		}
		return true
	case 't':
		return s.word("rue")
	case 'f':
		return s.word("alse")
	case 'n':
		return s.word("ull")
	}
	s.at = from
	return s.number()
}

// message is the member that journalctl -o json prints as an array of bytes if its value has
// control characters.
const message = "MESSAGE"

// beforeArrays returns the offset in b of the first member MESSAGE whose value is an array, or
// len(b). The search for marks finds no mark in such an array.
func beforeArrays(b []byte) int {
	const member = `"` + message + `"`
	for at := 0; ; at += len(member) {
		i := bytes.Index(b[at:], []byte(member))
		if i < 0 {
			return len(b)
		}
		at += i
		rest := bytes.TrimLeft(b[at+len(member):min(len(b), at+len(member)+16)], " \t")
		if len(rest) > 0 && rest[0] == ':' {
			if rest = bytes.TrimLeft(rest[1:], " \t"); len(rest) > 0 && rest[0] == '[' {
				return at
			}
		}
	}
}

// add adds a field whose text begins at s.text[n].
func (s *jsonScan) add(f field, n int) {
	f.text = s.text[n:len(s.text):len(s.text)]
	s.fields = append(s.fields, f)
}

func (s *jsonScan) word(rest string) bool {
	if n := min(len(rest), len(s.b)-s.at); string(s.b[s.at:s.at+n]) != rest[:n] {
		return false
	}
	s.at += min(len(rest), len(s.b)-s.at)
	return s.at < len(s.b)
}

// str reads a string after its opening quote.
func (s *jsonScan) str() bool {
	for s.at < len(s.b) {
		c := s.b[s.at]
		s.at++
		switch {
		case c == '"':
			return true
		case c < ' ':
			s.at--
			return false
		case c == '\\':
			if s.at == len(s.b) {
				return false
			}
			c = s.b[s.at]
			s.at++
			if c == 'u' {
				if _, ok := hex4(s.b[s.at:]); !ok {
					if len(s.b)-s.at < 4 {
						s.at = len(s.b)
					}
					return false
				}
				s.at += 4
			} else if strings.IndexByte(`"\/bfnrt`, c) < 0 {
				s.at -= 2
				return false
			}
		}
	}
	return false
}

func (s *jsonScan) number() bool {
	s.next('-')
	if !s.next('0') && !s.digits() {
		return false
	}
	if s.next('.') && !s.digits() {
		return false
	}
	if s.next('e') || s.next('E') {
		if !s.next('+') {
			s.next('-')
		}
		return s.digits()
	}
	return true
}

func (s *jsonScan) digits() bool {
	from := s.at
	for s.at < len(s.b) && digit(s.b[s.at]) {
		s.at++
	}
	return s.at > from
}

// isJSON returns JSON if b begins with a line of JSON that has a field, Auto if more bytes are
// needed, and Markup otherwise. If the first line is longer than the head, its start decides.
func isJSON(b []byte, until extent, names []string) Format {
	if !bytes.HasPrefix(b, []byte("{")) {
		return Markup
	}
	line, _, whole := bytes.Cut(b, newline)
	if whole || until == ended {
		if s := (jsonScan{b: line, names: names}); s.line() && s.begun { // the first text may be empty
			return JSON
		}
		return Markup
	}
	switch may, has := beginsJSON(line, names); {
	case !may:
		return Markup
	case until == more:
		return Auto
	case has:
		return JSON
	}
	return Markup
}
