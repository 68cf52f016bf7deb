package faults

import (
	"bytes"

	"github.com/symfilter/symfilter/internal/backtrace"
)

// Role returns the role of a backtrace in its report, from message, the line before the backtrace.
// continues is true if the backtrace belongs to a report that an earlier backtrace began.
func Role(message []byte) (role string, continues bool) {
	var space [backtrace.MaxMessage + 1]byte
	said := space[:0]
	for _, c := range message[:min(len(message), backtrace.MaxMessage)] {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		said = append(said, c)
	}
	said = append(said, ' ')
	words := wordsIn(said)
	switch {
	case words&freedBy != 0:
		return "freed", true
	case words&allocatedBy != 0:
		return "allocated", words&leakOf == 0
	case words&valgrindFreed != 0:
		return "freed", true
	case words&valgrindAllocated != 0:
		return "allocated", true
	case words&accessOf != 0 && words&previousOne != 0:
		return "used before", true
	case words&accessOf != 0:
		return "used", false
	case words&createdBy != 0:
		return "created", true
	}
	return "", false
}

// Bounds of the text between two stacks of a report.
const (
	maxApart      = 16      // lines
	maxApartBytes = 2 << 10 // bytes
)

// Within reports whether lines may be between two stacks of one report. A line about a read or a
// write begins another report, unless it is the last line: then it introduces the second stack.
func Within(lines []byte) bool {
	if len(lines) > maxApartBytes || bytes.Count(lines, newline) > maxApart {
		return false
	}
	before := lines[:bytes.LastIndexByte(bytes.TrimRight(lines, "\r\n"), '\n')+1]
	for _, access := range []string{"ead of size ", "EAD of size ", "rite of size ", "RITE of size "} {
		if bytes.Contains(before, []byte(access)) {
			return false
		}
	}
	return true
}

// Kind returns the kind of the crash or error in lines, which precede a backtrace, or "".
func Kind(lines []byte) (kind string) {
	for rest := lines[nextReportLine(lines):]; len(rest) > 0; rest = rest[nextReportLine(rest):] {
		var line []byte
		line, rest, _ = bytes.Cut(rest, newline)
		if h, ok := runtimeError(line); ok {
			kind = h.kind
		} else if h, ok := headerOf(line); ok {
			if kind = h.kind; kind == "" {
				kind = kindWord(h.message)
			}
		}
	}
	last := bytes.TrimRight(lines, " \t\r\n")
	if x, ok := leakIn(string(last[bytes.LastIndexByte(last, '\n')+1:])); ok {
		return x.Kind
	}
	if kind == "" {
		if x, ok := crashIn(lines); ok {
			kind = x.Kind
		}
	}
	return kind
}
