package input

import "bytes"

// headSize is how many bytes at the beginning of an input may say what it is.
const headSize = 4 << 10

// Recognise returns the format of an input that begins with head: of 4 KiB, or
// of all of it if it is shorter. It returns Auto if more bytes may make it
// another.
func Recognise(head []byte) Format { return recognise(head, len(head) >= headSize) }

// recognise is Recognise of a head behind which nothing comes that would be
// looked at, if it is final.
func recognise(head []byte, final bool) Format {
	if len(head) > 0 && len(bytes.TrimLeft(head, "\r\n\t ")) == 0 {
		return Markup // blank lines of a log go out at once
	}
	b := bytes.TrimLeft(trimPrefix(head, "\xef\xbb\xbf"), " \t\r\n")
	auto := false
	for _, is := range []func([]byte, bool) Format{isCRI, isDocker, isValgrind, isCallgrind, isRTrace} {
		switch f := is(b, final); f {
		case Markup:
		case Auto:
			auto = true
		default:
			return f
		}
	}
	if auto && !final {
		return Auto
	}
	return Markup
}

// isValgrind returns Valgrind, Markup, or Auto where more bytes are needed.
func isValgrind(b []byte, _ bool) Format {
	if xml := "<?xml"; bytes.HasPrefix(b, []byte(xml)) {
		end := bytes.Index(b, []byte("?>"))
		if end < 0 {
			return Auto
		}
		b = bytes.TrimLeft(b[end+2:], " \t\r\n")
		for bytes.HasPrefix(b, []byte("<!--")) {
			if end = bytes.Index(b, []byte("-->")); end < 0 {
				return Auto
			}
			b = bytes.TrimLeft(b[end+3:], " \t\r\n")
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

// isCallgrind returns Callgrind for what begins as its profiles do: with the
// line that says so, or with nothing but lines of a header, one of which names
// events, and behind them a function, a file, or an object. Many producers
// write no more than that.
func isCallgrind(b []byte, final bool) Format {
	if bytes.HasPrefix(b, []byte(magicOfCallgrind)) {
		return Callgrind
	}
	header := false
	seen := make(map[string]bool)
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		line = bytes.TrimRight(line, " \t\r")
		b = rest
		switch {
		case !whole && !final:
			if header || begins(magicOfCallgrind, line) || isHeader(line, true) != "" {
				return Auto
			}
			return Markup
		case len(line) == 0 || line[0] == '#' && header:
		default:
			if key := isHeader(line, false); key != "" {
				header, seen[key] = true, true
				continue
			}
			if key, _, ok := bytes.Cut(line, []byte("=")); ok && seen["events"] && isOneOf(specsOfCallgrind, key) {
				return Callgrind
			}
			return Markup
		}
	}
	switch {
	case seen["version"] && seen["creator"] && (seen["cmd"] || seen["events"]): // with a long command line
		return Callgrind
	case header:
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

// isRTrace returns RTrace for what begins with the header of a report of
// sp-rtrace: pairs of keys and values, with at least the version and one more.
func isRTrace(b []byte, final bool) Format {
	line, _, whole := bytes.Cut(b, []byte("\n"))
	keys := make(map[string]bool)
	for pair := range bytes.SplitSeq(line, []byte(",")) {
		key, value, ok := bytes.Cut(bytes.TrimLeft(pair, " \t"), []byte("="))
		switch string(key) {
		case "version":
			keys["version"] = len(value) > 0 && value[0] >= '0' && value[0] <= '9'
		case "arch", "timestamp", "process", "pid", "filter", "backtrace depth", "origin":
			keys[string(key)] = ok
		}
		if len(keys) == 0 && !(!whole && !final && (begins("version=", pair) || begins("arch=", pair))) {
			return Markup // a header begins with one of them
		}
	}
	switch {
	case keys["version"] && len(keys) >= 3, keys["version"] && keys["arch"]:
		return RTrace
	case !whole && !final:
		return Auto
	}
	return Markup
}

// begins reports whether b is the beginning of s.
func begins(s string, b []byte) bool { return len(b) < len(s) && s[:len(b)] == string(b) }

func isOneOf(words []string, word []byte) bool {
	for _, w := range words {
		if w == string(word) {
			return true
		}
	}
	return false
}

// trimPrefix is bytes.TrimPrefix, for a prefix that may be cut.
func trimPrefix(b []byte, prefix string) []byte {
	if n := min(len(b), len(prefix)); string(b[:n]) == prefix[:n] {
		return b[n:]
	}
	return b
}
