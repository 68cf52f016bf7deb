package input

import (
	"bytes"

	"slices"

	"github.com/symfilter/symfilter/rtrace"
)

// headSize is how many bytes at the beginning of an input may say what it is. Real reports and
// profiles say so in their first kilobyte.
const headSize = 4 << 10

// An extent says what follows the head of an input.
type extent uint8

const (
	more   extent = iota // more bytes may follow, and count
	full                 // more bytes may follow, and do not count
	silent               // nothing has followed for a while
	ended                // nothing follows: the last line is whole
)

// Recognise returns the format of an input that begins with head, of which it looks at 4 KiB. It
// returns Auto if head is shorter and does not decide. A format stays the same however many more bytes
// of the input head has.
func Recognise(head []byte) Format {
	if len(head) >= headSize {
		return recognise(head[:headSize], full)
	}
	return recognise(head, more)
}

// recognise returns the format of an input that begins with head, or Auto if more bytes may follow
// and decide.
func recognise(head []byte, until extent) Format {
	b := trimPrefix(head, byteOrderMark)
	if line, _, whole := bytes.Cut(b, newline); whole && len(bytes.TrimSpace(line)) == 0 {
		return Markup // blank lines of a log go out at once
	}
	b = bytes.TrimLeft(b, " \t\r")
	undecided := len(b) == 0
	for _, is := range []func([]byte, extent) Format{isCRI, isDocker, isValgrind, isCallgrind, isRTrace} {
		switch f := is(b, until); f {
		case Markup:
		case Auto:
			undecided = true
		default:
			return f
		}
	}
	if undecided && until == more {
		return Auto
	}
	return Markup
}

// byteOrderMark may begin a file of Windows.
const byteOrderMark = "\xef\xbb\xbf"

// isValgrind returns Valgrind, Markup, or Auto if more bytes are needed. A declaration ends on its
// line; comments may follow.
func isValgrind(b []byte, _ extent) Format {
	if xml := "<?xml"; bytes.HasPrefix(b, []byte(xml)) {
		line, _, whole := bytes.Cut(b, newline)
		end := bytes.Index(line, []byte("?>"))
		switch {
		case end < 0 && whole:
			return Markup
		case end < 0:
			return Auto
		}
		b = bytes.TrimLeft(b[end+2:], " \t\r\n")
		for bytes.HasPrefix(b, []byte("<!--")) {
			if end = bytes.Index(b, []byte("-->")); end < 0 {
				return Auto
			}
			b = bytes.TrimLeft(b[end+3:], " \t\r\n")
		}
		if begins("<!--", b) {
			return Auto
		}
	} else if begins(xml, b) {
		return Auto
	}
	const begin = "<valgrindoutput>"
	switch {
	case bytes.HasPrefix(b, []byte(begin)):
		return Valgrind
	case begins(begin, b):
		return Auto
	}
	return Markup
}

// Words that profiles of Callgrind have. The keys are of lines before the costs;
// of these "events" must be there, as the format says.
var (
	magicOfCallgrind = "# callgrind format"
	keysOfCallgrind  = []string{"version", "creator", "pid", "cmd", "part", "thread", "desc", "positions", "event", "events", "summary", "totals"}
	specsOfCallgrind = []string{"fl", "fn", "fi", "fe", "ob", "cfn", "cob", "cfi", "cfl"}
)

// isCallgrind returns Callgrind for what begins as its profiles do: with the line that says so and a
// line of a header, or one that names a function, a file, or an object; or with nothing but lines of
// a header, one of which names events, and then a function, a file, or an object. Many producers
// write no more than that. One line is not enough: it may be the first of a log.
func isCallgrind(b []byte, until extent) Format {
	magic := false
	seen := make(map[string]bool)
	for first := true; len(b) > 0; first = false {
		line, rest, whole := bytes.Cut(b, newline)
		line = bytes.TrimRight(line, " \t\r")
		b = rest
		cut := !whole && until != ended
		if cut && until == more {
			if len(seen) > 0 || magic || begins(magicOfCallgrind, line) || bytes.HasPrefix(line, []byte(magicOfCallgrind)) || isHeader(line, true) != "" {
				return Auto
			}
			return Markup
		}
		key := isHeader(line, false)
		spec, _, isSpec := bytes.Cut(line, []byte("="))
		isSpec = isSpec && slices.Contains(specsOfCallgrind, string(spec))
		switch {
		case first && bytes.HasPrefix(line, []byte(magicOfCallgrind)):
			magic = true
		case len(line) == 0, line[0] == '#' && !first:
		case key != "":
			seen[key] = true
			if magic || seen["version"] && seen["creator"] && (seen["cmd"] || seen["events"]) { // a command line may be long
				return Callgrind
			}
		case isSpec && (magic || seen["events"]):
			return Callgrind
		case cut && !first:
		default:
			return Markup
		}
	}
	if magic || len(seen) > 0 {
		return Auto
	}
	return Markup
}

// isHeader returns the key of a line of the header of a profile; or, if it is
// cut, whose beginning it may be.
func isHeader(line []byte, cut bool) string {
	for _, key := range keysOfCallgrind {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok && len(rest) > 0 && rest[0] == ':' {
			if (key == "events" || key == "version") && len(bytes.TrimSpace(rest[1:])) == 0 && !cut {
				continue // no event, or a paragraph of a log
			}
			return key
		}
		if cut && len(line) > 0 && begins(key+":", line) {
			return key
		}
	}
	return ""
}

// isRTrace returns RTrace for what begins with the header of a report of sp-rtrace: pairs of keys and
// values, with at least the version and one more; and then a record of such a report, or nothing. The
// header alone is not enough: it may be the first line of a log.
func isRTrace(b []byte, until extent) Format {
	line, rest, whole := bytes.Cut(b, newline)
	cut := !whole && until != ended
	keys := make(map[string]bool)
	for pair := range bytes.SplitSeq(line, []byte(",")) {
		key, value, ok := bytes.Cut(bytes.TrimLeft(pair, " \t"), []byte("="))
		switch string(key) {
		case "version":
			keys["version"] = len(value) > 0 && value[0] >= '0' && value[0] <= '9'
		case "arch", "timestamp", "process", "pid", "filter", "backtrace depth", "origin":
			keys[string(key)] = ok
		}
		if len(keys) == 0 && !(cut && until == more && (begins("version=", pair) || begins("arch=", pair))) {
			return Markup // a header begins with one of them
		}
	}
	switch {
	case cut:
		return Auto
	case !keys["version"] || len(keys) < 3 && !keys["arch"]:
		return Markup
	}
	for len(rest) > 0 {
		next, behind, whole := bytes.Cut(rest, newline)
		if rest = behind; !whole && until != ended {
			break
		}
		if text := bytes.TrimSpace(next); len(text) == 0 || text[0] == '#' {
			continue
		}
		if isRecord(line, next) {
			return RTrace
		}
		return Markup
	}
	if until == ended {
		return RTrace
	}
	return Auto
}

// isRecord reports whether a line after this header is a record of a report of sp-rtrace.
func isRecord(header, line []byte) bool {
	record := false
	r := rtrace.NewReader(func(rec *rtrace.Record) error {
		switch rec.Kind {
		case rtrace.Alloc, rtrace.Free, rtrace.Map, rtrace.Context, rtrace.Resource, rtrace.Attachment:
			record = true
		}
		return nil
	})
	for _, b := range [][]byte{header, newline, line, newline} {
		r.Write(b) // no bytes make it fail
	}
	r.Close()
	return record
}

// begins reports whether b is the beginning of s.
func begins(s string, b []byte) bool { return len(b) < len(s) && s[:len(b)] == string(b) }

// trimPrefix is bytes.TrimPrefix, for a prefix that may be cut.
func trimPrefix(b []byte, prefix string) []byte {
	if n := min(len(b), len(prefix)); string(b[:n]) == prefix[:n] {
		return b[n:]
	}
	return b
}
