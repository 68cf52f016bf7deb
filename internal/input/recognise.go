package input

import (
	"bytes"
	"slices"

	"github.com/symfilter/symfilter/rtrace"
)

// headSize is the number of bytes at the start of an input that may decide the format. Real reports
// and profiles are recognised within the first kilobyte.
const headSize = 4 << 10

// An extent describes the input after its head.
type extent uint8

const (
	more   extent = iota // more bytes may follow, and may decide
	full                 // more bytes may follow, but are not considered
	silent               // nothing has followed for some time
	ended                // nothing follows: the last line is complete
)

// Recognise returns the format of an input that begins with head. It examines at most 4 KiB. It
// returns Auto if head is shorter and does not decide. Further bytes never change a recognised
// format.
func Recognise(head []byte) Format {
	if len(head) >= headSize {
		return recognise(head[:headSize], full, nil)
	}
	return recognise(head, more, nil)
}

// recognise returns the format of an input that begins with head, or Auto if later bytes may
// decide. fields are Translators.Fields.
func recognise(head []byte, until extent, fields []string) Format {
	b := trimPrefix(head, byteOrderMark)
	if line, _, whole := bytes.Cut(b, newline); whole && len(bytes.TrimSpace(line)) == 0 {
		return Markup // leading blank lines of a log are printed at once
	}
	b = bytes.TrimLeft(b, " \t\r")
	undecided := len(b) == 0
	for _, is := range []func([]byte, extent) Format{isCRI, isDocker, isJournal, isValgrind, isCallgrind, isRTrace} {
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
	if fields == nil {
		fields = DefaultFields()
	}
	return isJSON(b, until, fields)
}

// byteOrderMark may begin a file written on Windows.
const byteOrderMark = "\xef\xbb\xbf"

// Words in profiles of Callgrind. A key begins a header line. Header lines precede the costs; the
// format requires "events".
var (
	magicOfCallgrind = "# callgrind format"
	keysOfCallgrind  = []string{"version", "creator", "pid", "cmd", "part", "thread", "desc", "positions", "event", "events", "summary", "totals"}
	specsOfCallgrind = []string{"fl", "fn", "fi", "fe", "ob", "cfn", "cob", "cfi", "cfl"}
)

// isCallgrind returns Callgrind if b begins like a profile, Auto if more bytes are needed, and
// Markup otherwise. A spec is a line that names a function, a file or an object. After a first line
// with magicOfCallgrind, one header or one spec is enough. Without that line, b must have either
// the headers version, creator, and cmd or events, or the header events before a spec. A single
// line of this kind may also begin a log.
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
			// the cmd: line may be longer than the head
			if magic || seen["version"] && seen["creator"] && (seen["cmd"] || seen["events"]) {
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

// isHeader returns the key of a profile's header line, or "". If cut is set, line may be
// incomplete.
func isHeader(line []byte, cut bool) string {
	for _, key := range keysOfCallgrind {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok && len(rest) > 0 && rest[0] == ':' {
			if (key == "events" || key == "version") && len(bytes.TrimSpace(rest[1:])) == 0 && !cut {
				continue // a profile has an event and a version; a log may have such a heading
			}
			return key
		}
		if cut && len(line) > 0 && begins(key+":", line) {
			return key
		}
	}
	return ""
}

// isRTrace returns RTrace if b begins like a report of sp-rtrace, Auto if more bytes are needed,
// and Markup otherwise. The header has a version, and the architecture or two other known keys. A
// record must follow, unless the input ends: the header alone may be the first line of a log.
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
			return Markup // a header begins with one of these keys
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
		if rtrace.IsRecord(line, next) {
			return RTrace
		}
		return Markup
	}
	if until == ended {
		return RTrace
	}
	return Auto
}

// begins reports whether s begins with b, and is longer.
func begins(s string, b []byte) bool { return len(b) < len(s) && s[:len(b)] == string(b) }

// trimPrefix removes prefix from the start of b. If b is shorter than prefix and equals its
// beginning, the result is empty.
func trimPrefix(b []byte, prefix string) []byte {
	if n := min(len(b), len(prefix)); string(b[:n]) == prefix[:n] {
		return b[n:]
	}
	return b
}
