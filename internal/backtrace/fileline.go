package backtrace

import (
	"strconv"
	"strings"
)

// SourceAt splits s, of the form FILE:LINE or FILE:LINE:COLUMN. column is 0 if s has none. ok is
// false if s has another form.
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

func cutNumber(s string) (before string, n uint32, ok bool) {
	i := strings.LastIndexByte(s, ':')
	if i <= 0 {
		return s, 0, false
	}
	number, err := strconv.ParseUint(s[i+1:], 10, 32)
	return s[:i], uint32(number), err == nil
}
