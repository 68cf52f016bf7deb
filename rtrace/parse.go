package rtrace

import (
	"bytes"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/report"
)

// parse classifies a line without its line end, and fills in rec. first is set if only empty
// lines precede the line.
func parse(rec *record, line []byte, first bool) {
	text := trim(line)
	rec.Kind = commentRecord
	if len(text) == 0 {
		rec.Kind = blankRecord
		return
	}
	is := false
	switch c := text[0]; {
	case '0' <= c && c <= '9':
		is = parseCall(rec, text)
	case c == ':':
		is = parseMap(rec, text[1:])
	case c == '@':
		is = parseContext(rec, text[1:])
	case c == '<':
		is = parseResource(rec, text[1:])
	case c == '&':
		is = parseAttachment(rec, text[1:])
	case c == '$':
		is = parseArgument(rec, text[1:])
	case c == '#':
		rec.Temporary = len(line) > 1 && line[0] == '#' && line[1] == ' '
		return
	}
	if !is && line[0] != '\t' {
		parseHeader(rec, line, first)
	}
}

// parseFrame parses a line of a frame: blanks, an address, and the text after it.
func parseFrame(line []byte) (addr uint64, after []byte, ok bool) {
	i := indent(line)
	if i == 0 || len(line)-i < 3 || line[i] != '0' || line[i+1]|0x20 != 'x' {
		return 0, nil, false
	}
	i += 2
	start := i
	for ; i < len(line); i++ {
		c := line[i]
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			if c != ' ' && c != '\t' {
				return 0, nil, false
			}
			return addr, trim(line[i:]), i > start
		}
		if i-start >= 16 {
			return 0, nil, false
		}
		addr = addr<<4 | uint64(c)
	}
	return addr, nil, i > start
}

// parseCall reads a call:
//
//  12. @3 [14:54:26.319] malloc<memory>(102) = 0x804b008
//  13. free<memory>(0x804b008)
func parseCall(rec *record, line []byte) bool {
	i := 0
	for i < len(line) && '0' <= line[i] && line[i] <= '9' {
		i++
	}
	index, ok := decimal(line[:i])
	if !ok || i == len(line) || line[i] != '.' {
		return false
	}
	line = trim(line[i+1:])
	var contexts uint64
	if len(line) > 0 && line[0] == '@' {
		word, rest := cutWord(line[1:])
		if contexts, ok = hex(word); !ok {
			return false
		}
		line = rest
	}
	var time []byte
	if len(line) > 0 && line[0] == '[' {
		end := bytes.IndexByte(line, ']')
		if end < 0 || !isTime(line[1:end]) {
			return false
		}
		time, line = line[1:end], trim(line[end+1:])
	}
	kind, size, id := allocRecord, int64(0), uint64(0)
	paren := -1
	// printf writes a null pointer as (nil)
	if at := lastIndex(line, "("); at >= 0 && string(line[at:]) == "(nil)" {
		line = append(bytes.Clone(line[:at]), '0')
	} else if at >= 0 && string(line[at:]) == "(nil))" {
		line = append(bytes.Clone(line[:at]), "0x0)"...)
	}
	if paren = lastIndex(line, "("); paren < 0 {
		return false
	}
	inside, after, ok := bytes.Cut(line[paren+1:], []byte(")"))
	if !ok {
		return false
	}
	inside, after = trim(inside), trim(after)
	if len(after) > 0 && after[0] == '=' {
		word, _ := cutWord(trim(after[1:]))
		if id, ok = hex(word); !ok {
			return false
		}
		if size, ok = signed(inside); !ok {
			return false
		}
	} else {
		kind = freeRecord
		if len(inside) < 3 || inside[0] != '0' || inside[1]|0x20 != 'x' {
			return false
		}
		if id, ok = hex(inside); !ok {
			return false
		}
	}
	function, typ := splitType(trim(line[:paren]))
	if len(function) == 0 {
		return false
	}
	rec.Kind, rec.Index, rec.Contexts, rec.Time, rec.Size, rec.ID = kind, index, contexts, time, size, id
	rec.Function, rec.Type = function, typ
	return true
}

// splitType splits "malloc<memory>" into function and type. The function's name may contain
// angle brackets.
func splitType(name []byte) (function, typ []byte) {
	n := len(name)
	if n == 0 || name[n-1] != '>' {
		return name, nil
	}
	depth := 0
	for i := n - 1; i > 0; i-- {
		switch name[i] {
		case '>':
			depth++
		case '<':
			if depth--; depth == 0 {
				return trim(name[:i]), name[i+1 : n-1]
			}
		}
	}
	return name, nil
}

// isTime reports whether text is a time, such as 14:54:26.319.
func isTime(text []byte) bool {
	digits := false
	for _, c := range text {
		if '0' <= c && c <= '9' {
			digits = true
		} else if c != ':' && c != '.' && c != ' ' {
			return false
		}
	}
	return digits
}

// parseMap parses a mapping: "/lib/a.so => 0x1000-0x2000". The path may contain blanks.
func parseMap(rec *record, line []byte) bool {
	at := lastIndex(line, "=>")
	if at < 0 {
		return false
	}
	from, to, ok := bytes.Cut(line[at+2:], []byte("-"))
	if !ok {
		return false
	}
	var ok1, ok2 bool
	rec.From, ok1 = hex(trim(from))
	rec.To, ok2 = hex(trim(to))
	rec.Path = trim(line[:at])
	if !ok1 || !ok2 || rec.From >= rec.To || len(rec.Path) == 0 {
		return false
	}
	rec.Kind = mapRecord
	return true
}

// parseContext parses the name of a context: "2 : name".
func parseContext(rec *record, line []byte) bool {
	id, name, ok := bytes.Cut(line, []byte(":"))
	if !ok {
		return false
	}
	if rec.Mask, ok = hex(trim(id)); !ok {
		return false
	}
	rec.Kind, rec.Name = contextRecord, trim(name)
	return true
}

// parseResource parses a type of resource: "1> : memory (memory in heap) [refcount]".
func parseResource(rec *record, line []byte) bool {
	id, rest, ok := bytes.Cut(line, []byte(">"))
	if !ok {
		return false
	}
	rest = trim(rest)
	if rec.Mask, ok = hex(trim(id)); !ok || len(rest) == 0 || rest[0] != ':' {
		return false
	}
	rest = trim(rest[1:])
	if n := len(rest); n > 0 && rest[n-1] == ']' {
		if i := lastIndex(rest, "["); i >= 0 {
			rec.Flags = trim(rest[i+1 : n-1])
			rest = trim(rest[:i])
		}
	}
	name := rest
	if n := len(rest); n > 0 && rest[n-1] == ')' {
		if i := bytes.IndexByte(rest, '('); i >= 0 {
			name, rec.Description = trim(rest[:i]), rest[i+1:n-1]
		}
	}
	if len(name) == 0 {
		return false
	}
	for flag := range bytes.SplitSeq(rec.Flags, []byte("|")) {
		if string(trim(flag)) == "refcount" {
			rec.RefCount = true
		}
	}
	rec.Kind, rec.Name = resourceRecord, name
	return true
}

// parseAttachment parses a file that belongs to the report: "maps : /tmp/maps".
func parseAttachment(rec *record, line []byte) bool {
	name, path, ok := bytes.Cut(line, []byte(" :"))
	if !ok {
		return false
	}
	rec.Name, rec.Path = trim(name), trim(path)
	if len(rec.Name) == 0 || len(rec.Path) == 0 {
		return false
	}
	rec.Kind = attachmentRecord
	return true
}

// parseArgument parses an argument of a call: "1 = value".
func parseArgument(rec *record, line []byte) bool {
	name, value, ok := bytes.Cut(line, []byte("="))
	rec.Name, rec.Value = trim(name), trim(value)
	if !ok || len(rec.Name) == 0 || bytes.IndexByte(rec.Name, ' ') >= 0 {
		return false
	}
	rec.Kind = argumentRecord
	return true
}

// keys are the keys of headers, in order.
var keys = [...]string{"version", "arch", "timestamp", "process", "pid", "filter", "backtrace depth", "origin", "timestamps"}

// parseHeader parses a header: keys and values. The first line of a report is a header if it has a
// known key. A later line must begin with "version=" and have two known keys.
func parseHeader(rec *record, line []byte, first bool) {
	line, bom := cutPrefix(line, byteOrderMark)
	if bom && !first {
		return
	}
	if !first && !bytes.HasPrefix(line, []byte("version=")) {
		return
	}
	known := 0
	fields := rec.Fields[:0]
	for rest := line; len(fields) < maxFields; {
		key, after, ok := bytes.Cut(rest, []byte("="))
		if !ok || !isWords(trim(key)) {
			break
		}
		end := endOfValue(after)
		fields = append(fields, headerField{trim(key), trim(after[:end])})
		if slices.Contains(keys[:], string(trim(key))) {
			known++
		}
		if end == len(after) {
			break
		}
		rest = after[end+1:]
	}
	rec.Fields = fields
	if known == 0 || !first && known < 2 {
		rec.Fields = fields[:0]
		return
	}
	rec.Kind = headerRecord
}

// endOfValue returns the end of the value at the beginning of text. The value ends before the first
// comma after which another key begins or text ends. Without such a comma, the value is all of
// text.
func endOfValue(text []byte) int {
	for i := 0; i < len(text); i++ {
		if text[i] != ',' {
			continue
		}
		rest := trim(text[i+1:])
		if len(rest) == 0 {
			return i
		}
		if key, _, ok := bytes.Cut(rest, []byte("=")); ok && isWords(trim(key)) {
			return i
		}
	}
	return len(text)
}

// isWords reports whether text may be the key of a header.
func isWords(text []byte) bool {
	for _, c := range text {
		if (c|0x20 < 'a' || c|0x20 > 'z') && c != ' ' && c != '_' && c != '-' {
			return false
		}
	}
	return len(text) > 0
}

// hex parses a hexadecimal number, with or without 0x.
func hex(text []byte) (n uint64, ok bool) {
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		text = text[2:]
	}
	return report.Hex(text)
}

// decimal parses a number below 2^63, without a sign.
func decimal(text []byte) (n uint64, ok bool) {
	n, err := strconv.ParseUint(string(text), 10, 63)
	return n, err == nil
}

// signed parses a size, which is negative if it overflowed in the program. Empty text is 0, for
// calls without a size.
func signed(text []byte) (n int64, ok bool) {
	if len(text) == 0 {
		return 0, true
	}
	minus := text[0] == '-'
	if minus {
		text = text[1:]
	}
	if len(text) > 2 && text[0] == '0' && text[1]|0x20 == 'x' {
		u, ok := hex(text)
		return int64(u), ok && u < 1<<63 && !minus
	}
	u, ok := decimal(text)
	if minus {
		return -int64(u), ok
	}
	return int64(u), ok
}

func trim(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\t') {
		text = text[1:]
	}
	for n := len(text); n > 0 && (text[n-1] == ' ' || text[n-1] == '\t'); n-- {
		text = text[:n-1]
	}
	return text
}

// cutWord splits text after its first word.
func cutWord(text []byte) (word, rest []byte) {
	for i, c := range text {
		if c == ' ' || c == '\t' {
			return text[:i], trim(text[i:])
		}
	}
	return text, nil
}

func cutPrefix(text []byte, prefix string) ([]byte, bool) {
	return bytes.CutPrefix(text, []byte(prefix))
}

func lastIndex(text []byte, sep string) int { return bytes.LastIndex(text, []byte(sep)) }
