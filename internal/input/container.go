package input

import (
	"bytes"
	"encoding/json"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/escape"
)

// A part is the envelope of a line of a container's log. The text between head and tail is a whole
// line of the container, or a part of a long or unfinished line.
type part struct {
	head   []byte // before the text
	tail   []byte // after the text
	stderr bool   // the stream is stderr, not stdout
	whole  bool   // the container's line ends here
}

type container struct {
	// open splits a line, without its line end, into envelope and text. The text has no line end,
	// and shares memory with line or buf. open returns false if the line does not have the format.
	open func(line []byte, buf *[]byte) (p part, text []byte, ok bool)

	// seal appends a line with the envelope p, another text and a line end. whole is set if the
	// container's line ends with this text. If terminal is set, ESC is not escaped, so colours
	// work.
	seal func(dst []byte, p part, text []byte, whole, terminal bool) []byte

	// unfinished returns the offset of the first line in b that may be a part of a longer line, or
	// len(b). b has whole lines. The check is fast, but may be wrong, so open decides. hint is kept
	// between calls.
	unfinished func(b []byte, hint *int) int

	// prefix appends the part of the envelope that a page shows before the text.
	prefix func(dst []byte, p part) []byte

	// fields appends the JSON members for the envelope, each after a comma.
	fields func(dst []byte, p part) []byte
}

var (
	cri    = container{openCRI, sealCRI, unfinishedCRI, prefixCRI, fieldsCRI}
	docker = container{openDocker, sealDocker, unfinishedDocker, prefixDocker, fieldsDocker}
)

// The format of the Container Runtime Interface, which Kubernetes and Podman use:
//
//	2016-10-06T00:17:09.669794202Z stdout F The content of the log entry
//
// The tag is P if the next line of the stream continues the line. Further tags may follow, each
// after a colon.

// openCRI splits a line of the format. Its head is, for example, "… stdout F ".
func openCRI(line []byte, _ *[]byte) (p part, text []byte, ok bool) {
	n := timestamp(line)
	if n == 0 || len(line) < n+len(" stdout F ") {
		return p, nil, false
	}
	switch string(line[n : n+8]) {
	case " stdout ":
	case " stderr ":
		p.stderr = true
	default:
		return p, nil, false
	}
	tag := n + 8
	end := tag + 1
	if line[end] == ':' {
		i := bytes.IndexByte(line[end:], ' ')
		if i < 0 || i > maxTags {
			return p, nil, false
		}
		end += i
	}
	if line[end] != ' ' || line[tag] != 'F' && line[tag] != 'P' {
		return p, nil, false
	}
	p.head, p.whole = line[:end+1], line[tag] == 'F'
	return p, line[end+1:], true
}

const maxTags = 256 // bytes of further tags: CRI defines none yet

// timestamp returns the length of the RFC 3339 time at the beginning of b, or 0.
func timestamp(b []byte) int {
	n := len(timeForm)
	if len(b) < n+1 || !fitsTimeForm(b) {
		return 0
	}
	if b[n] == '.' {
		begin := n
		for n++; n < len(b) && digit(b[n]); n++ {
		}
		if n == begin+1 || n > begin+10 || n == len(b) {
			return 0
		}
	}
	switch b[n] {
	case 'Z':
		return n + 1
	case '+', '-':
		if n+6 <= len(b) && digit(b[n+1]) && digit(b[n+2]) && b[n+3] == ':' && digit(b[n+4]) && digit(b[n+5]) {
			return n + 6
		}
	}
	return 0
}

// timeForm is the form of the start of a timestamp, with 0 for each digit.
const timeForm = "0000-00-00T00:00:00"

// fitsTimeForm reports whether b begins with a time of this form, or is the beginning of such a
// time.
func fitsTimeForm(b []byte) bool {
	for i := range min(len(b), len(timeForm)) {
		if c := timeForm[i]; c == '0' && !digit(b[i]) || c != '0' && c != b[i] {
			return false
		}
	}
	return true
}

func digit(c byte) bool { return c-'0' < 10 }

func sealCRI(dst []byte, p part, text []byte, whole, _ bool) []byte {
	tag := len(dst) + bytes.IndexByte(p.head, ' ') + len(" stdout ")
	dst = append(dst, p.head...)
	dst[tag] = 'P'
	if whole {
		dst[tag] = 'F'
	}
	return append(append(dst, text...), '\n')
}

// unfinishedCRI is container.unfinished for CRI: it checks the tag of each line. hint is the offset
// of the end of the tag in the preceding line, usually the same in the next line.
func unfinishedCRI(b []byte, hint *int) int {
	const stdout, stderr, end = "Z stdout F ", "Z stderr F ", len("Z stdout F ")
	n := *hint // end of " F "
	for at := 0; at < len(b); {
		next := at + n
		if n < end || next >= len(b) || b[at+len("0000-00-00")] != 'T' || string(b[next-end:next]) != stdout && string(b[next-end:next]) != stderr {
			line := b[at:]
			if i := bytes.IndexByte(line, '\n'); i >= 0 {
				line = line[:i]
			}
			p, _, ok := openCRI(line, nil)
			if ok && !p.whole {
				return at
			}
			n = len(p.head)
			*hint = n
			next = at + n
		}
		i := bytes.IndexByte(b[next:], '\n')
		if i < 0 {
			break
		}
		at = next + i + 1
	}
	return len(b)
}

// prefixCRI appends the envelope unchanged. A part gets the envelope of a whole line, since parts
// are joined.
func prefixCRI(dst []byte, p part) []byte {
	if p.whole {
		return append(dst, p.head...)
	}
	return appendPrefix(dst, p, p.head[:bytes.IndexByte(p.head, ' ')])
}

// appendPrefix appends a time, which may be empty, and the stream's name, as in CRI.
func appendPrefix(dst []byte, p part, time []byte) []byte {
	if len(time) > 0 {
		dst = append(append(dst, time...), ' ')
	}
	if p.stderr {
		return append(dst, "stderr F "...)
	}
	return append(dst, "stdout F "...)
}

func fieldsCRI(dst []byte, p part) []byte {
	return appendFields(dst, p, p.head[:bytes.IndexByte(p.head, ' ')])
}

// appendFields appends the members time, unless it is empty, and stream.
func appendFields(dst []byte, p part, time []byte) []byte {
	if len(time) > 0 {
		dst = append(append(append(dst, `,"time":"`...), time...), '"')
	}
	if p.stderr {
		return append(dst, `,"stream":"stderr"`...)
	}
	return append(dst, `,"stream":"stdout"`...)
}

// The format of Docker's logging driver json-file: one object in each line, with the members in
// this order:
//
//	{"log":"Log line is here\n","stream":"stdout","attrs":{…},"time":"2019-01-01T11:11:11.111111111Z"}
//
// A line of more than 16 KiB is several objects: all but the last lack the \n. Braces in the text
// are not escaped.

const (
	headDocker   = `{"log":"`
	wholeDocker  = `\n","stream":"std` // after the text of a whole line
	stdoutDocker = `","stream":"stdout"`
	stderrDocker = `","stream":"stderr"`
)

// openDocker splits a line of Docker's format json-file into its text and the rest. p.tail begins
// with the quote after the text.
func openDocker(line []byte, buf *[]byte) (p part, text []byte, ok bool) {
	line = bytes.TrimSuffix(line, []byte{'\r'})
	if len(line) < len(headDocker) || string(line[:len(headDocker)]) != headDocker {
		return p, nil, false
	}
	n := stringEnd(line[len(headDocker):])
	if n < 0 {
		return p, nil, false
	}
	coded, tail := line[len(headDocker):len(headDocker)+n], line[len(headDocker)+n:]
	if len(tail) <= len(stdoutDocker) || tail[len(tail)-1] != '}' {
		return p, nil, false
	}
	switch string(tail[:len(stdoutDocker)]) {
	case stdoutDocker:
	case stderrDocker:
		p.stderr = true
	default:
		return p, nil, false
	}
	if c := tail[len(stdoutDocker)]; c != ',' && c != '}' {
		return p, nil, false
	}
	if hasControl(tail) {
		return p, nil, false
	}
	if *buf, ok = unquote((*buf)[:0], coded); !ok {
		return p, nil, false
	}
	text = *buf
	p.head, p.tail = line[:len(headDocker)], tail
	if k := len(text); k > 0 && text[k-1] == '\n' {
		p.whole, text = true, text[:k-1]
	}
	return p, text, true
}

func sealDocker(dst []byte, p part, text []byte, whole, terminal bool) []byte {
	dst = appendQuoted(append(dst, headDocker...), text, true, terminal)
	if whole {
		dst = append(dst, `\n`...)
	}
	return append(append(dst, p.tail...), '\n')
}

// unfinishedDocker is container.unfinished for Docker: it checks the end of each text. hint is the
// distance from the end of the text to the line end in the preceding line, usually the same in the
// next line.
func unfinishedDocker(b []byte, hint *int) int {
	const whole = wholeDocker
	for at := 0; at < len(b); {
		i := bytes.IndexByte(b[at:], '\n')
		if i < 0 {
			break
		}
		line := b[at : at+i]
		if n := len(line) - *hint; n < 0 || *hint < len(whole) || string(line[n:n+len(whole)]) != whole {
			n := bytes.LastIndex(line, []byte(whole))
			if n < 0 {
				return at
			}
			*hint = len(line) - n
		}
		at += i + 1
	}
	return len(b)
}

// prefixDocker appends the time and the stream in CRI's form: Docker's object would hide the text.
func prefixDocker(dst []byte, p part) []byte {
	const member = `"time":"`
	time := p.tail[max(0, bytes.LastIndex(p.tail, []byte(member))):]
	time = bytes.TrimPrefix(time, []byte(member))
	return appendPrefix(dst, p, time[:timestamp(time)])
}

// fieldsDocker appends the stream, and the time and the attributes if they are valid.
func fieldsDocker(dst []byte, p part) []byte {
	var of struct {
		Time  string
		Attrs json.RawMessage
	}
	object := append([]byte{'{'}, p.tail[len(stdoutDocker):]...)
	if object[1] == ',' {
		object = append(object[:1], object[2:]...)
	}
	if json.Unmarshal(object, &of) != nil {
		of.Attrs = nil
	}
	time := []byte(of.Time)
	if timestamp(time) != len(time) {
		time = nil
	}
	dst = appendFields(dst, p, time)
	if len(of.Attrs) > 0 && of.Attrs[0] == '{' && utf8.Valid(of.Attrs) {
		dst = escape.AppendJSON(append(dst, `,"attrs":`...), []byte(of.Attrs))
	}
	return dst
}

// stringEnd returns the index of the quote that ends the JSON string in b, or -1. The opening quote
// is before b.
func stringEnd(b []byte) int {
	for at := 0; ; at++ {
		i := bytes.IndexByte(b[at:], '"')
		if i < 0 {
			return -1
		}
		at += i
		n := at
		for n > 0 && b[n-1] == '\\' {
			n--
		}
		if (at-n)%2 == 0 {
			return at
		}
	}
}

// unquote appends the text of b, the inside of a JSON string. It returns false if b is invalid.
func unquote(dst, b []byte) ([]byte, bool) {
	for len(b) > 0 {
		i := 0
		for i < len(b) && b[i] != '\\' {
			if b[i] < ' ' {
				return dst, false
			}
			i++
		}
		dst = append(dst, b[:i]...)
		if b = b[i:]; len(b) == 0 {
			break
		}
		if len(b) < 2 {
			return dst, false
		}
		c := b[1]
		b = b[2:]
		if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
			dst = append(dst, "\"\\/\b\f\n\r\t"[i])
			continue
		}
		r, ok := hex4(b)
		if c != 'u' || !ok {
			return dst, false
		}
		b = b[4:]
		if utf16.IsSurrogate(r) {
			low, ok := rune(0), false
			if len(b) >= 6 && b[0] == '\\' && b[1] == 'u' {
				low, ok = hex4(b[2:])
			}
			if pair := utf16.DecodeRune(r, low); ok && pair != utf8.RuneError {
				r, b = pair, b[6:]
			} else { // an unpaired surrogate, in the form that appendQuoted escapes
				dst = append(dst, 0xe0|byte(r>>12), 0x80|byte(r>>6&0x3f), 0x80|byte(r&0x3f))
				continue
			}
		}
		dst = utf8.AppendRune(dst, r)
	}
	return dst, true
}

func hasControl(b []byte) bool {
	for _, c := range b {
		if c < ' ' || c == 0x7f {
			return true
		}
	}
	return false
}

func hex4(b []byte) (r rune, ok bool) {
	if len(b) < 4 {
		return 0, false
	}
	for _, c := range b[:4] {
		switch {
		case digit(c):
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		r = r<<4 | rune(c)
	}
	return r, true
}

// appendQuoted appends text as the inside of a JSON string. If html is set, it also escapes <, >, &
// and the line ends of Unicode, as Go and Docker do. If terminal is set, it does not escape ESC. It
// escapes surrogates encoded in UTF-8, and keeps all other bytes that are not valid UTF-8.
func appendQuoted(dst, text []byte, html, terminal bool) []byte {
	const hex = "0123456789abcdef"
	from := 0
	for i := 0; i < len(text); {
		c := text[i]
		n := 1
		r := rune(c)
		if c >= utf8.RuneSelf {
			half := c == 0xed && i+2 < len(text) && text[i+1] >= 0xa0 && text[i+1] < 0xc0 && text[i+2]&0xc0 == 0x80
			switch r, n = utf8.DecodeRune(text[i:]); {
			case half:
				n = 3
				r = 0xd000 | rune(text[i+1]&0x3f)<<6 | rune(text[i+2]&0x3f)
			case !html || r != 0x2028 && r != 0x2029:
				i += n
				continue
			}
		} else if c == 0x1b && terminal || c >= ' ' && c != '"' && c != '\\' && (!html || c != '<' && c != '>' && c != '&') {
			i++
			continue
		}
		dst = append(dst, text[from:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, `\n`...)
		case '\r':
			dst = append(dst, `\r`...)
		case '\t':
			dst = append(dst, `\t`...)
		default:
			dst = append(dst, '\\', 'u', hex[r>>12&15], hex[r>>8&15], hex[r>>4&15], hex[r&15])
		}
		i += n
		from = i
	}
	return append(dst, text[from:]...)
}

// isCRI returns CRI if b begins with a line of that format, Auto if more bytes are needed, and
// Markup otherwise.
func isCRI(b []byte, until extent) Format {
	line, _, whole := bytes.Cut(b, newline)
	if _, _, ok := openCRI(line, nil); ok {
		return CRI
	}
	const longest = len(timeForm+".000000000+00:00 stdout F: ") + maxTags
	if whole || until != more || len(line) > longest || !fitsTimeForm(line) {
		return Markup
	}
	return Auto
}

// isDocker returns Docker if b begins with a line of that format, Auto if more bytes are needed,
// and Markup otherwise. The text of a line must end with a line feed, unlike in other programs'
// logs. If the first line is longer than the head, its start decides.
func isDocker(b []byte, until extent) Format {
	if begins(headDocker, b) {
		return Auto
	}
	var buf []byte
	for first := true; len(b) > 0; first = false {
		line, rest, whole := bytes.Cut(b, newline)
		b = rest
		p, _, ok := openDocker(line, &buf)
		switch {
		case !whole && until == more && mayBeDocker(line, &buf):
			return Auto
		case ok && p.whole:
			return Docker
		case ok:
		case whole, !mayBeDocker(line, &buf):
			return Markup
		case first, until != silent && len(line) >= headSize/2:
			return Docker
		}
	}
	return Auto
}

// mayBeDocker reports whether the start of a line may have the format.
func mayBeDocker(line []byte, buf *[]byte) bool {
	text, ok := bytes.CutPrefix(line, []byte(headDocker))
	if !ok {
		return begins(headDocker, line)
	}
	n := stringEnd(text)
	if n < 0 {
		return !bytes.ContainsFunc(text, func(c rune) bool { return c < ' ' })
	}
	tail := bytes.TrimSuffix(text[n:], []byte{'\r'})
	if *buf, ok = unquote((*buf)[:0], text[:n]); !ok {
		return false
	}
	if hasControl(tail) {
		return false
	}
	for _, stream := range []string{stdoutDocker, stderrDocker} {
		if begins(stream, tail) || string(tail) == stream {
			return true
		}
		if rest, ok := bytes.CutPrefix(tail, []byte(stream)); ok {
			return rest[0] == ',' || rest[0] == '}'
		}
	}
	return false
}
