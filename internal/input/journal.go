package input

import (
	"bytes"
	"encoding/binary"
	"slices"

	"github.com/symfilter/symfilter/internal/lines"
)

// The export format of journald: entries, each followed by an empty line. An entry has fields, each
// a line NAME=VALUE. A value with control characters is binary. Its length precedes it, in 8 bytes,
// little-endian:
//
//	__CURSOR=s=739ad463348b4ceca5a9e69c95a3c93f;i=4ece7
//	_PID=417
//	MESSAGE
//	<length>VALUE
//
// An Envelope filters each whole entry as a record.

const cursor = "__CURSOR="

// An entryCutter cuts a stream into entries, as [lines.Cutter] cuts a stream into lines. It returns
// an entry in parts if the entry has more than maxLine bytes or an invalid field.
type entryCutter struct {
	tail []byte // the unfinished entry so far; of a long entry, only its unfinished field
	at   int    // bytes of whole fields in tail
	from int    // bytes of tail after at that are known to have no line end

	long bool   // a first part of the entry, lines.Head, was returned
	skip uint64 // remaining bytes of the current binary field of a long entry
	mid  bool   // the current value of a long entry is text: it ends at the next line end
}

// next adds p to the input, and returns the next entry, or the next part of a long entry. kind is
// the kind of the result: see [lines.Kind]. lines.None means that more bytes are needed. rest holds
// the bytes of p after the result.
func (c *entryCutter) next(p []byte) (b []byte, kind lines.Kind, rest []byte) {
	switch {
	case c.skip > 0:
		n := int(min(c.skip, uint64(len(p))))
		c.skip -= uint64(n)
		return p[:n], lines.Rest, p[n:]
	case c.mid:
		n := bytes.IndexByte(p, '\n') + 1
		if c.mid = n == 0; c.mid {
			n = len(p)
		}
		return p[:n], lines.Rest, p[n:]
	}
	had := len(c.tail)
	data := p
	if had > 0 {
		data = append(c.tail, p...)
	}
	for end := false; !end; {
		n, size := 0, uint64(0)
		n, size, c.from, end = fieldLength(data[c.at:], c.from)
		if n == 0 {
			return c.unfinished(data, had, size)
		}
		c.at += n
		switch {
		case end:
		case c.long:
			return c.cut(data, p, lines.Rest)
		case !isField(data[c.at-n:]):
			c.long = true
			return c.cut(data, p, lines.Head)
		}
	}
	kind = lines.Whole
	if c.long {
		kind = lines.Rest
	}
	c.long = false
	return c.cut(data, p, kind)
}

func (c *entryCutter) cut(data, p []byte, kind lines.Kind) (b []byte, _ lines.Kind, rest []byte) {
	b, rest = data[:c.at], p[len(p)-(len(data)-c.at):]
	c.at, c.from = 0, 0
	if c.tail = c.tail[:0]; len(data) > len(p) {
		c.tail = data[:0] // b stays valid until the next call
	}
	if cap(c.tail) > maxScratch {
		c.tail = nil
	}
	return b, kind, rest
}

// unfinished keeps data, or returns it as a part if the entry is too long. data ends within a
// field, and c.tail already has data[:had]. size is the length of that field if it is binary and
// the length is known, otherwise 0.
func (c *entryCutter) unfinished(data []byte, had int, size uint64) (b []byte, kind lines.Kind, rest []byte) {
	field := data[c.at:]
	if !c.long && len(data) <= maxLine && size <= maxLine || size == 0 && bytes.IndexByte(field, '=') < 0 && len(field) < maxLine {
		if had == 0 {
			data = append(c.tail, data...)
		}
		c.tail = data
		return nil, lines.None, nil
	}
	kind = lines.Rest
	if !c.long {
		kind = lines.Head
	}
	if c.long, c.mid = true, size == 0; size > 0 {
		c.skip = size - uint64(len(field))
	}
	c.tail, c.at, c.from = nil, 0, 0
	return data, kind, nil
}

// fieldLength returns the length of the first field in b with its line end, or of the empty line
// that ends an entry. b[:from] must have no line end. n is 0 if the end of the field is missing.
// Then size is the length of a binary field, if known, and searched is the value of from for the
// next call.
func fieldLength(b []byte, from int) (n int, size uint64, searched int, end bool) {
	i := bytes.IndexByte(b[from:], '\n')
	if i < 0 {
		return 0, 0, len(b), false
	}
	i += from
	switch {
	case i == 0:
		return 1, 0, 0, true
	case bytes.IndexByte(b[:i], '=') >= 0 || !isField(b):
		return i + 1, 0, 0, false
	case len(b) < i+9:
		return 0, 0, from, false
	}
	head := uint64(i + 9)
	size = min(binary.LittleEndian.Uint64(b[i+1:]), 1<<62) + head + 1
	if size > uint64(len(b)) {
		return 0, size, from, false
	}
	return int(size), 0, 0, false
}

func isField(b []byte) bool {
	for i, c := range b {
		if c == '=' || c == '\n' {
			return i > 0
		}
		if (c < 'A' || c > 'Z') && c != '_' && !digit(c) {
			return false
		}
	}
	return false
}

// giveUp returns the unfinished entry so far, except a field of unknown form. Later parts of the
// entry are returned as they arrive.
func (c *entryCutter) giveUp() (b []byte) {
	if c.long || len(c.tail) == 0 {
		return nil
	}
	b = c.tail
	c.long, c.mid = true, bytes.IndexByte(b[c.at:], '=') >= 0
	if c.tail = nil; !c.mid {
		b, c.tail = b[:c.at], bytes.Clone(b[c.at:])
	}
	c.at, c.from = 0, 0
	return b
}

func (c *entryCutter) finish() []byte {
	b := c.tail
	*c = entryCutter{}
	return b
}

func fieldValue(b []byte) (name, value []byte) {
	i := bytes.IndexAny(b, "=\n")
	if i < 0 || b[i] == '=' {
		name, value, _ = bytes.Cut(b, []byte{'='})
		return name, bytes.TrimSuffix(value, newline)
	}
	return b[:i], b[i+9 : len(b)-1]
}

// journalFields appends the values of an entry's fields in names, without the empty ones. If all of
// them are empty, it appends the first one, since an empty line may end a stack. It calls known, if
// not nil, with systemd-coredump's fields about files.
func journalFields(fields []field, entry []byte, names []string, known func(name string, value []byte)) []field {
	var empty []field // first field without text
	had := len(fields)
	for at := 0; at < len(entry); {
		n, _, _, end := fieldLength(entry[at:], 0)
		if n == 0 || end {
			break
		}
		name, value := fieldValue(entry[at : at+n])
		switch i := slices.Index(names, string(name)); {
		case i >= 0:
			f := field{name: names[i], from: at, to: at + n, form: exported, text: value}
			if len(value) > 0 {
				fields = append(fields, f)
			} else if empty == nil {
				empty = []field{f}
			}
		case known != nil && (string(name) == coredumpProgram || string(name) == coredumpPackages):
			known(string(name), value)
		}
		at += n
	}
	if len(fields) == had {
		fields = append(fields, empty...)
	}
	return fields
}

// appendMessages appends the messages in b, which has lines of fields and lines of messages. It
// omits other fields, the ends of entries, and a message's line that looks like another field.
func appendMessages(dst, b []byte) []byte {
	entry := false // the previous line is a field
	for line := range bytes.Lines(b) {
		text, isMessage := bytes.CutPrefix(line, []byte(message+"="))
		isOther := !isMessage && isField(line) && bytes.IndexByte(line, '=') > 0
		isEnd := entry && len(line) == len(newline)
		if entry = isMessage || isOther; !isOther && !isEnd {
			dst = append(dst, text...)
		}
	}
	return dst
}

func (e *Envelope) writeEntries(p []byte) {
	for rest := p; len(rest) > 0; {
		var b []byte
		var kind lines.Kind
		switch b, kind, rest = e.entries.next(rest); kind {
		case lines.Whole:
			e.entry(b)
		case lines.Head, lines.Rest:
			e.passEntry(b)
		}
	}
}

// passEntry prints a part of an entry unchanged. It prints nothing if the output is objects or
// comes from a Printer.
func (e *Envelope) passEntry(b []byte) {
	e.f.Release() // e.out keeps the writer's error
	e.catchUp()
	if !e.out.records {
		e.out.print(b)
	}
}

func (e *Envelope) entry(b []byte) {
	if len(b) == 0 {
		return
	}
	if e.lines {
		e.messageLines(b)
		return
	}
	if e.quick() && !e.marked(b) {
		e.f.Text(b) // e.out keeps the writer's error
		return
	}
	fields := journalFields(e.found[:0], b, e.names, e.learnField)
	e.found = fields[:0]
	switch {
	case e.ascii:
		e.filterBare(b)
	case e.quick() && !slices.ContainsFunc(fields, func(f field) bool { return e.marked(f.text) }):
		e.f.Text(b) // e.out keeps the writer's error
	default:
		e.filterRecord(&seal{raw: b, fields: slices.Clip(append([]field{}, fields...))})
	}
}

// isJournal returns Journal if b begins like a journal in the export format, Auto if more bytes are
// needed, and Markup otherwise.
func isJournal(b []byte, _ extent) Format {
	switch {
	case begins(cursor, b):
		return Auto
	case bytes.HasPrefix(b, []byte(cursor)):
		return Journal
	}
	return Markup
}
