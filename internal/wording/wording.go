// Package wording makes common parts of messages to people: a count with its noun, a number
// with commas, the cause of an error alone, and text of unknown origin on one line.
package wording

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/symfilter/symfilter/internal/escape"
)

// Count returns a number with its noun: 1 module, 2 modules.
func Count(n int64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Commas returns a decimal number with commas between its thousands: 1,234,567.
func Commas(number string) string {
	b := append(make([]byte, 0, 32), number...)
	for at := len(b) - 3; at > 0 && b[at-1] != '-'; at -= 3 {
		b = slices.Insert(b, at, ',')
	}
	return string(b)
}

// Cause returns the system's error without operation and path, for a message that names the
// file.
func Cause(err error) error {
	if path, ok := errors.AsType[*os.PathError](err); ok {
		return path.Err
	}
	if link, ok := errors.AsType[*os.LinkError](err); ok {
		return link.Err
	}
	return err
}

// Line escapes the bytes that would end the line or control a terminal, since messages quote
// logs and files. It uses the escapes of the filter's output.
func Line(s string) string { return string(escape.AppendText(nil, s, "")) }
