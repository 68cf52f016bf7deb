package backtrace

import (
	"strconv"
	"strings"
)

// SourceAt parses the line and the column, 0 without one, at the end of s: FILE:LINE:COLUMN. file
// has what is before.
func SourceAt(s string) (file string, line, column uint32, ok bool) {
	file, last, ok := cutNumber(s)
	if !ok {
		return s, 0, 0, false
	}
	if before, n, ok := cutNumber(file); ok {
		return before, n, last, true
	}
	return file, last, 0, true
}

// cutNumber cuts ":N" off s.
func cutNumber(s string) (before string, n uint32, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return s, 0, false
	}
	number, err := strconv.ParseUint(s[i+1:], 10, 32)
	return s[:i], uint32(number), err == nil
}
