package input

import (
	"bytes"
	"encoding/binary"
	"slices"
	"strconv"
	"unicode"
	"unicode/utf8"
)

// A field is a filtered value in a record, which is a line of JSON or a journal entry. The other
// bytes of the record stay unchanged.
type field struct {
	name     string // name of the member; empty for a whole line
	from, to int    // range in the record
	form     form
	text     []byte
	last     int64 // the filter's number for the last line of text
	end      int   // end of its output in seal.got, once known
}

// A form is the encoding of a value.
type form uint8

const (
	jsonString form = iota
	htmlString      // a string with <, > and & escaped, as in Go
	byteArray       // an array of numbers, as in journald for texts with control characters
	exported        // a field in journald's export format, with its name and its line end
	wholeLine       // a whole line of JSON, which must stay a valid object
)

// text of a wholeLine that is printed unchanged
const notFiltered = "{}"

// ended reports whether the text ends with a line end. If not, the filter gets and prints an
// additional line end.
func (f *field) ended() bool { return bytes.HasSuffix(f.text, newline) }

func (f *field) lines() int64 {
	n := bytes.Count(f.text, newline)
	if !f.ended() {
		n++
	}
	return int64(n)
}

// textOf returns the text of a line of the log, or the line itself if it does not have the format.
func (e *Envelope) textOf(line []byte, buf *[]byte) []byte {
	if e.c.open != nil {
		if _, text, ok := e.c.open(line, buf); ok {
			return text
		}
	}
	if e.format == CRI {
		return line
	}
	fields, ok := jsonFields(nil, line, e.names, buf)
	if !ok {
		return line
	}
	var text []byte
	for _, f := range fields {
		text = append(append(text, bytes.TrimSuffix(f.text, newline)...), '\n')
	}
	return text[:len(text)-1]
}

func (e *Envelope) fieldsOf(fields []field, record []byte) ([]field, bool) {
	if e.format == Journal {
		return journalFields(fields, record, e.names, nil), true
	}
	return e.jsonFields(fields, bytes.TrimSuffix(record, newline), &e.text)
}

// jsonFields calls the function jsonFields for the members of e. With Dialects.Elements, a line
// that is one field is filtered only if it already has elements: new elements would need module
// elements, which the object cannot hold.
func (e *Envelope) jsonFields(fields []field, line []byte, buf *[]byte) ([]field, bool) {
	fields, ok := jsonFields(fields, line, e.names, buf)
	if f := fields[max(0, len(fields)-1):]; ok && e.elements && f[0].form == wholeLine && !bytes.Contains(line, markupOpen) {
		f[0].text = []byte(notFiltered)
	}
	return fields, ok
}

// maxRecord bounds the bytes of output for a record. A record with more is printed unchanged.
const maxRecord = 8 << 20

// recordLine processes a record. It returns false if the caller must print the record unchanged.
// Before it prints or keeps anything itself, it calls flush.
func (e *Envelope) recordLine(line []byte, flush func()) bool {
	var fields []field
	ok := len(line) <= maxLine+1
	if ok {
		fields, ok = e.fieldsOf(e.found[:0], line)
		e.found = fields[:0]
	}
	if !ok || e.ascii && !harmless(line, fields) {
		return e.bareLine(line, flush)
	}
	if !e.every && !e.each && !slices.ContainsFunc(fields, func(f field) bool { return string(f.text) == notFiltered || e.f.HasMark(f.text) }) {
		return false
	}
	e.passOn(nil, flush)
	flush()
	e.learnLine(line)
	e.filterRecord(&seal{raw: line, fields: fields, noEnd: line[len(line)-1] != '\n'})
	return true
}

// filterRecord gives the filter the texts of a record, each on separate lines. A backtrace may be
// in one text, or have one frame in each of several records.
func (e *Envelope) filterRecord(l *seal) {
	if len(l.parts) > 0 { // a line of a container
		e.enter(l.text)
	} else {
		e.enter(bytes.TrimSuffix(l.raw, newline))
	}
	l.line = e.f.Line() + 1
	l.last = l.line - 1
	several := false
	for i := range l.fields {
		f := &l.fields[i]
		several = several || f.lines() > 1
		l.last += f.lines()
		f.last = l.last
	}
	e.out.begin(l)
	for i := range l.fields {
		f := &l.fields[i]
		e.given = append(e.given[:0], f.text...)
		if !f.ended() {
			e.given = append(e.given, '\n')
		}
		e.f.Write(e.given) // e.out keeps the writer's error
	}
	// a trace that began earlier may continue in the next record
	if held := int64(e.f.HeldTrace()); several && held > 0 && held <= l.last-l.line+1 {
		e.f.Release()
	}
	e.endLine()
}

// harmless reports whether the parts of a record outside of its fields may be printed on a
// terminal. It returns false if a field is the whole line.
func harmless(line []byte, fields []field) bool {
	at := 0
	for _, f := range fields {
		if f.form == wholeLine || !printable(line[at:f.from]) {
			return false
		}
		at = f.to
	}
	return printable(bytes.TrimRight(line[at:], "\r\n"))
}

// printable reports whether b is UTF-8 without control characters, and without characters that
// change the direction of text.
func printable(b []byte) bool {
	return utf8.Valid(b) && !bytes.ContainsFunc(b, func(r rune) bool { return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp) })
}

// prefixFields are the members of a line of JSON that a page shows before the texts.
var prefixFields = []string{"time", "timestamp", "@timestamp", "ts", "date", "level", "severity", "log.level", "logger"}

// maxPrefix bounds the value of one of these fields.
const maxPrefix = 64 // bytes

// appendRecordPrefix appends time, level and logger of a line of JSON, each with a blank, if they
// are short strings. It appends nothing if the first field is not a string of JSON.
func appendRecordPrefix(dst, record []byte, fields []field) []byte {
	if f := fields[0].form; f != jsonString && f != htmlString {
		return dst
	}
	var buf []byte
	found, ok := jsonFields(nil, bytes.TrimSuffix(record, newline), prefixFields, &buf)
	if !ok || found[0].form == wholeLine {
		return dst
	}
	for _, f := range found {
		if len(f.text) <= maxPrefix && !bytes.ContainsFunc(f.text, unicode.IsControl) {
			dst = append(append(dst, f.text...), ' ')
		}
	}
	return dst
}

// take adds output for a line to l.got.
func (l *seal) take(line int64, p []byte) {
	for l.field < len(l.fields)-1 && line > l.fields[l.field].last {
		l.fields[l.field].end = len(l.got)
		l.field++
	}
	if len(l.got)+len(p) > maxRecord {
		l.cut = true
	}
	if !l.cut {
		l.got = append(l.got, p...)
	}
}

// finishRecord prints a record whose output is complete. It omits the record if none of its texts
// has output, as for modules and maps.
func (s *sealer) finishRecord(l *seal) {
	for ; l.field < len(l.fields); l.field++ {
		l.fields[l.field].end = len(l.got)
	}
	changed, shown, from := false, false, 0
	for i := range l.fields {
		f := &l.fields[i]
		out := l.got[from:f.end]
		from = f.end
		shown = shown || len(bytes.TrimSpace(out)) > 0 || bytes.Count(out, newline) >= int(f.lines())
		changed = changed || !f.unchanged(out)
		if f.form == wholeLine && shown && changed && !isObject(out) {
			l.cut = true
		}
	}
	switch {
	case l.cut, !changed: // too large, not valid, or unchanged
		s.print(l.raw)
		s.bare = l.noEnd
		return
	case !shown:
		return
	}
	s.endBare()
	at, from := 0, 0
	raw, inside := l.raw, len(l.parts) > 0
	dst := s.buf
	if inside { // a line of a container
		raw, dst = l.text, s.record[:0]
	}
	for i := range l.fields {
		f := &l.fields[i]
		out := l.got[from:f.end]
		if from = f.end; f.unchanged(out) {
			continue
		}
		if !f.ended() {
			out = bytes.TrimSuffix(out, newline)
		}
		dst = append(dst, raw[at:f.from]...)
		dst = f.append(dst, raw, out, s.term)
		at = f.to
	}
	dst = append(dst, raw[at:]...)
	if inside {
		if s.record = dst; cap(dst) > maxScratch {
			s.record = nil
		}
		s.seal(l, append(dst, '\n'), true)
		return
	}
	s.buf = dst
	s.bare = l.noEnd
	if len(s.buf) >= bufSize {
		s.flush()
	}
}

// isObject reports whether b, a line, is a JSON object.
func isObject(b []byte) bool {
	s := jsonScan{b: b}
	return bytes.Count(b, newline) <= 1 && s.line()
}

// unchanged reports whether out is the text of f with a line end, or f must not be filtered.
func (f *field) unchanged(out []byte) bool {
	n := len(f.text)
	if f.form == wholeLine && string(out) == notFiltered+"\n" {
		return true
	}
	return bytes.HasPrefix(out, f.text) && (len(out) == n && f.ended() || len(out) == n+1 && out[n] == '\n' && !f.ended())
}

// append appends text in the form of f, a field of the record raw.
func (f *field) append(dst, raw, text []byte, terminal bool) []byte {
	switch f.form {
	case wholeLine:
		return append(dst, text...)
	case byteArray:
		dst = append(dst, '[')
		for i, c := range text {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = strconv.AppendUint(dst, uint64(c), 10)
		}
		return append(dst, ']')
	case exported:
		name := raw[f.from : f.from+bytes.IndexAny(raw[f.from:], "=\n")]
		dst = append(dst, name...)
		if bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' && c != '\t' }) {
			dst = binary.LittleEndian.AppendUint64(append(dst, '\n'), uint64(len(text)))
		} else {
			dst = append(dst, '=')
		}
		return append(append(dst, text...), '\n')
	}
	return appendQuoted(dst, text, f.form == htmlString, terminal)
}
