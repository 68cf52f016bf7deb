package faults

import (
	"bytes"
	"strings"
	"sync"

	"github.com/symfilter/symfilter/internal/findings"
	"github.com/symfilter/symfilter/internal/marks"
)

// A reportHeader is the first line of a report of a sanitizer.
type reportHeader struct {
	mode    reportMode
	at      int // offset of the report in the line
	tool    string
	kind    string // empty if the summary has it
	message string
	pid     string // empty if the line has none

	file         string // source file of a runtime error
	line, column uint32
}

// reportMarks are the words by which reports are found. The first and the last line of a
// sanitizer's report have one of these words. The first word is the end of names such as
// AddressSanitizer.
var reportMarks = []struct {
	word string
	at   int // index in word of three bytes to search for
}{
	{"Sanitizer: ", 6}, {"libFuzzer: ", 6}, {": runtime error: ", 8},
}

// reportSet searches for three bytes of each word in reportMarks. Few logs without reports have
// these bytes.
var reportSet = sync.OnceValue(func() marks.Set {
	return marks.NewSet([]marks.Mark{{First: "z", Rest: "er"}, {First: "e", Rest: " e", Bucket: 1}})
})

// isReportLine reports whether a line may begin or end a report.
func isReportLine(text []byte) bool {
	for i := range reportMarks {
		if bytes.Contains(text, []byte(reportMarks[i].word)) {
			return true
		}
	}
	return false
}

// nextReportLine returns the offset of the first line that may begin or end a report, or the
// length of lines.
func nextReportLine(lines []byte) int {
	s := reportSet().Search(lines, nil)
	for from := 0; ; {
		at, _ := s.Next(from)
		if at == len(lines) {
			return at
		}
		for i := range reportMarks {
			m := &reportMarks[i]
			if begin := at - m.at; begin >= 0 && bytes.HasPrefix(lines[begin:], []byte(m.word)) {
				return bytes.LastIndexByte(lines[:at], '\n') + 1
			}
		}
		from = at + 1
	}
}

// headerOf parses the first line of a report, which may have other text before it:
//
//	==4711==ERROR: AddressSanitizer: heap-use-after-free on address 0x6020 at pc 0x55a5 bp 0x7ffc sp 0x7ffc
//	WARNING: ThreadSanitizer: data race (pid=4711)
//	==4711== ERROR: libFuzzer: deadly signal
func headerOf(text []byte) (h reportHeader, ok bool) {
	line := string(text)
	for _, word := range []string{"ERROR: ", "WARNING: "} {
		at := strings.Index(line, word)
		if at < 0 {
			continue
		}
		name, rest, found := strings.Cut(line[at+len(word):], ": ")
		h.tool = toolOf(name)
		if !found || h.tool == "" {
			continue
		}
		h.at, h.pid = processBefore(line, at)
		if h.pid == "" {
			h.pid = processIn(rest)
		}
		if h.pid == "" && h.tool != "libfuzzer" || word == "WARNING: " && h.tool != "tsan" && h.tool != "msan" {
			continue // a warning of the sanitizer, or text about one
		}
		h.mode = ofSanitizer
		if strings.Contains(rest, "detected memory leaks") {
			h.mode, h.tool = ofLeaks, "lsan"
		}
		h.message = withoutPlaces(rest)
		h.kind = kindIn(h.tool, h.message)
		return h, true
	}
	return h, false
}

// toolOf returns the short name of a sanitizer, or "".
func toolOf(name string) string {
	switch name {
	case "AddressSanitizer":
		return "asan"
	case "HWAddressSanitizer":
		return "hwasan"
	case "LeakSanitizer":
		return "lsan"
	case "MemorySanitizer":
		return "msan"
	case "ThreadSanitizer":
		return "tsan"
	case "UndefinedBehaviorSanitizer":
		return "ubsan"
	case "DataFlowSanitizer":
		return "dfsan"
	case "RealtimeSanitizer":
		return "rtsan"
	case "TypeSanitizer":
		return "tysan"
	case "NumericalStabilitySanitizer":
		return "nsan"
	case "MemProfiler", "Scudo":
		return strings.ToLower(name)
	case "libFuzzer":
		return "libfuzzer"
	}
	return ""
}

// processBefore returns the offset and the PID of "==PID==" before the given offset. Without that
// text, it returns the given offset and "".
func processBefore(line string, at int) (from int, pid string) {
	s := strings.TrimSuffix(strings.TrimSuffix(line[:at], " "), "==")
	digits := strings.TrimRight(s, "0123456789")
	if len(s) == at || len(digits) == len(s) || !strings.HasSuffix(digits, "==") {
		return at, ""
	}
	return len(digits) - len("=="), s[len(digits):]
}

// processIn returns the PID of "(pid=PID)" in the rest of a header, or "".
func processIn(rest string) string {
	_, after, ok := strings.Cut(rest, "(pid=")
	pid, _, closed := strings.Cut(after, ")")
	if !ok || !closed || pid == "" || strings.Trim(pid, "0123456789") != "" {
		return ""
	}
	return pid
}

// withoutPlaces removes addresses, processes and threads from a header.
func withoutPlaces(s string) string {
	for _, mark := range []string{" on address", " on unknown address", " at pc ", " (pid=", " (pc ", " in thread T", " (thread T", " on 0x", ": 0x", " (0x"} {
		if i := strings.Index(s, mark); i > 0 {
			s = s[:i]
		}
	}
	return withoutAddresses(strings.TrimRight(s, ": "))
}

// withoutAddresses replaces each number that begins with 0x by 0x….
func withoutAddresses(s string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, "0x")
		if i < 0 {
			break
		}
		i += len("0x")
		b.WriteString(s[:i])
		rest := strings.TrimLeft(s[i:], "0123456789abcdefABCDEF")
		if len(rest) < len(s)-i {
			b.WriteString("…")
		}
		s = rest
	}
	b.WriteString(s)
	return b.String()
}

// kindIn returns the kind of error in a header's message, or "" if only later lines of the
// report name it.
func kindIn(tool, message string) string {
	switch {
	case strings.HasPrefix(message, "attempting double-free"):
		return "double-free"
	case strings.HasPrefix(message, "attempting free"):
		return "bad-free"
	case strings.HasPrefix(message, "attempting "), strings.HasPrefix(message, "requested allocation"), tool == "lsan":
		return ""
	}
	kind, _, _ := strings.Cut(message, " (")
	if tool != "tsan" && tool != "libfuzzer" {
		kind, _, _ = strings.Cut(kind, " ")
	}
	return kindWord(kind)
}

// kindWord returns the text of kind before the first colon, with hyphens for blanks.
func kindWord(kind string) string {
	kind, _, _ = strings.Cut(strings.TrimRight(kind, ": "), ":")
	return strings.Join(strings.Fields(kind), "-")
}

// hasSummary reports whether text has the last line of a report, which repeats a frame.
func hasSummary(text []byte) bool {
	i := bytes.Index(text, []byte("SUMMARY: "))
	return i >= 0 && isReportLine(text[i:])
}

// kindInSummary returns the kind of error in the last line of a report.
func kindInSummary(text []byte) string {
	_, rest, _ := strings.Cut(string(text), "SUMMARY: ")
	_, rest, _ = strings.Cut(rest, ": ")
	kind, _, _ := strings.Cut(rest, " ")
	return kindWord(kind)
}

// memoryOfKind returns the state of the memory that a kind of error accesses.
func memoryOfKind(kind string) findings.Memory {
	switch {
	case strings.Contains(kind, "use-after"), strings.Contains(kind, "double-free"):
		return findings.MemoryFreed
	case strings.Contains(kind, "overflow") && !strings.Contains(kind, "integer") && kind != "stack-overflow",
		strings.Contains(kind, "underflow"), strings.Contains(kind, "poison"):
		return findings.MemoryAlive
	case kind == "SEGV", kind == "BUS", kind == "bad-free", kind == "wild-access":
		return findings.MemoryOutside
	}
	return findings.MemoryUnknown
}

// accessIn returns the access in a line before the first stack, such as "READ of size 8", or "". It
// leaves out addresses and threads, which differ between runs.
func accessIn(line string) string {
	if _, rest, ok := strings.Cut(line, "The signal is caused by a "); ok {
		kind, _, _ := strings.Cut(rest, " ")
		return kind
	}
	before, rest, ok := strings.Cut(line, " of size ")
	if !ok {
		return ""
	}
	word := before[strings.LastIndexByte(before, ' ')+1:]
	digits := len(rest) - len(strings.TrimLeft(rest, "0123456789"))
	if !strings.EqualFold(word, "read") && !strings.EqualFold(word, "write") || digits == 0 {
		return ""
	}
	return strings.ToUpper(word) + " of size " + rest[:digits]
}

// detailIn returns the explanation in a line between the stacks of a report, or "".
func detailIn(line string) string {
	if _, rest, ok := strings.Cut(line, " is located "); ok {
		if i := strings.Index(rest, " [0x"); i > 0 {
			rest = rest[:i]
		}
		return withoutAddresses(rest)
	}
	for _, mark := range []string{"Hint: ", "HINT: ", "Cause: ", "object passed to delete has wrong type", "Location is ", "Cycle in lock order graph: "} {
		if i := strings.Index(line, mark); i >= 0 {
			return withoutAddresses(strings.TrimSuffix(line[i:], ":"))
		}
	}
	return ""
}

// leakIn returns the leak that a line reports:
//
//	Direct leak of 14 byte(s) in 2 object(s) allocated from:
func leakIn(line string) (x findings.Finding, ok bool) {
	before, rest, ok := strings.Cut(line, "irect leak of ")
	if !ok {
		return x, false
	}
	x.Kind, x.Message = "direct-leak", "Direct leak of "
	if strings.HasSuffix(before, "Ind") {
		x.Kind, x.Message = "indirect-leak", "Indirect leak of "
	}
	what, _, _ := strings.Cut(rest, " allocated from")
	x.Message += strings.TrimSuffix(what, ":")
	x.Bytes, rest = number(rest)
	if _, rest, ok = strings.Cut(rest, " in "); ok {
		x.Blocks, _ = number(rest)
	}
	return x, true
}

// number returns the number at the beginning of s, and the rest.
func number(s string) (n uint64, rest string) {
	for rest = s; rest != "" && '0' <= rest[0] && rest[0] <= '9' && n < 1<<60; rest = rest[1:] {
		n = n*10 + uint64(rest[0]-'0')
	}
	return n, rest
}
