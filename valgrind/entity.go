package valgrind

import (
	"bytes"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/report"
)

// appendSections appends the content of the CDATA sections of b, without line ends at its beginning
// and end.
func appendSections(dst, b []byte) []byte {
	start := len(dst)
	for {
		_, rest, ok := bytes.Cut(b, []byte(cdataBegin))
		if !ok {
			break
		}
		var content []byte
		content, b, _ = bytes.Cut(rest, []byte(marks[cdataEnd]))
		dst = append(dst, content...)
	}
	text := bytes.Trim(dst[start:], "\r\n")
	return dst[:start+copy(dst[start:], text)]
}

// appendDecoded appends b with the entities of XML decoded. Any other '&' is kept.
func appendDecoded(dst, b []byte) []byte {
	for {
		i := bytes.IndexByte(b, '&')
		if i < 0 {
			return append(dst, b...)
		}
		dst = append(dst, b[:i]...)
		b = b[i:]
		end := bytes.IndexByte(b[:min(len(b), 12)], ';')
		n := len(dst)
		if end > 0 {
			dst = appendEntity(dst, string(b[1:end]))
		}
		if len(dst) == n {
			dst = append(dst, '&')
			b = b[1:]
		} else {
			b = b[end+1:]
		}
	}
}

// appendEntity appends the character of an entity, or nothing if XML has no such entity.
func appendEntity(dst []byte, name string) []byte {
	switch name {
	case "lt":
		return append(dst, '<')
	case "gt":
		return append(dst, '>')
	case "amp":
		return append(dst, '&')
	case "quot":
		return append(dst, '"')
	case "apos":
		return append(dst, '\'')
	}
	if len(name) < 2 || name[0] != '#' {
		return dst
	}
	n, ok := uint64(0), false
	if name[1] == 'x' {
		n, ok = report.Hex([]byte(name[2:]))
	} else {
		n, ok = parseNumber([]byte(name[1:]))
	}
	if !ok || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return dst
	}
	return utf8.AppendRune(dst, rune(n))
}
