package filter

import (
	"bytes"
	"strings"

	"github.com/symfilter/symfilter/report"
)

// rolesOnPage remembers the role of the last message: a log may repeat one a million times.
type rolesOnPage struct {
	message   []byte
	role      string
	continues bool
}

// of is roleOnPage.
func (r *rolesOnPage) of(message []byte) (role string, continues bool) {
	if !bytes.Equal(r.message, message) {
		r.message = append(r.message[:0], message...)
		r.role, r.continues = roleOnPage(message)
	}
	return r.role, r.continues
}

// roleOnPage returns what a backtrace shows of the report that it is part of, by the line before it, and
// whether that is a report which other backtraces have begun.
func roleOnPage(message []byte) (role string, continues bool) {
	said := strings.ToLower(string(message)) + " "
	switch roleOf(said) {
	case report.RoleFreed:
		return "freed", true
	case report.RoleAllocated:
		return "allocated", !strings.Contains(said, " leak of ")
	}
	switch {
	case strings.Contains(said, "previous ") && accessIn(said[strings.Index(said, "previous "):]) != "":
		return "used before", true
	case accessIn(said) != "":
		return "used", false
	case strings.Contains(said, " created by "), strings.Contains(said, " created at:"):
		return "created", true
	}
	return "", false
}

// kindOnPage returns the kind of the crash or the error that a backtrace after these lines is of, or "".
func kindOnPage(lines []byte) (kind string) {
	for rest := lines; len(rest) > 0; {
		var line []byte
		line, rest, _ = bytes.Cut(rest, newline)
		if !isReportLine(line) {
			continue
		}
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
