package markup

import "strconv"

// A SyntaxError reports why text that begins like an element is malformed. Functions of this
// package return a pointer: compare it with nil before you convert it to an error.
type SyntaxError struct {
	// offset of Got in bytes: in the line, or in the fields for functions that get only the fields
	Off      int
	Tag      string // tag of the element
	Expected string // with its article: "an address"
	Got      string // text found instead, shortened to 64 bytes; "" if none
}

// Error returns one line, such as: bt: expected an address, found "12".
func (e *SyntaxError) Error() string {
	found := "nothing"
	if e.Got != "" {
		found = strconv.Quote(e.Got)
	}
	return e.Tag + ": expected " + e.Expected + ", found " + found
}

// A fault describes a syntax error without allocating memory: parsers return it, and only Parse,
// ParseAs and the Scanner make it an error.
type fault struct {
	off, end int    // range of the wrong text in the fields
	expected string // "" if there is no fault
}

// report returns the fault as an error, or nil. The element's fields begin at the offset base.
func (f fault) report(tag Tag, fields []byte, base int) *SyntaxError {
	if f.expected == "" {
		return nil
	}
	return newError(tag, base+f.off, f.expected, fields[f.off:f.end])
}

func newError(tag Tag, off int, expected string, got []byte) *SyntaxError {
	return &SyntaxError{Off: off, Tag: tag.String(), Expected: expected, Got: shorten(got)}
}

func shorten(got []byte) string {
	if len(got) > maxGot {
		return string(got[:maxGot]) + "…"
	}
	return string(got)
}
