package valgrind

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// encodingOf returns the encoding that an XML declaration names, or "" if it names none.
func encodingOf(declaration []byte) string {
	_, rest, _ := bytes.Cut(declaration, []byte("encoding"))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	rest, is := bytes.CutPrefix(rest, []byte("="))
	rest = bytes.TrimLeft(rest, " \t\r\n")
	if !is || len(rest) == 0 || rest[0] != '"' && rest[0] != '\'' {
		return ""
	}
	name, _, _ := bytes.Cut(rest[1:], rest[:1])
	return string(name[:min(len(name), maxName)])
}

// isUTF8 reports whether the Reader gets a report in this encoding as UTF-8. This includes UTF-16,
// which is decoded earlier.
func isUTF8(encoding string) bool {
	switch strings.ToUpper(encoding) {
	case "", "UTF-8", "UTF8", "US-ASCII", "ASCII", "UTF-16", "UTF-16LE", "UTF-16BE":
		return true
	}
	return false
}

// isLatin1 reports whether encoding is ISO 8859-1, the first 256 characters of Unicode.
func isLatin1(encoding string) bool {
	switch strings.ToUpper(encoding) {
	case "ISO-8859-1", "ISO_8859-1", "ISO8859-1", "LATIN-1", "LATIN1", "L1":
		return true
	}
	return false
}

func isASCII(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// fromLatin1 converts b from ISO 8859-1 to UTF-8.
func fromLatin1(b []byte) []byte {
	if isASCII(b) {
		return b
	}
	all := make([]byte, 0, len(b)+len(b)/4)
	for _, c := range b {
		all = utf8.AppendRune(all, rune(c))
	}
	return all
}
