package markup

import "strconv"

// A SyntaxError says why what begins like an element is none. The functions that return one return a pointer, to be compared with nil
// before it becomes an error.
type SyntaxError struct {
	Off      int    // the byte, from 0, of what was found: in the line, or in the fields where only they were given
	Tag      string // the element's
	Expected string // what should have stood there, with its article: "an address"
	Got      string // what stood there, shortened to 64 bytes; "" for nothing
}

// Error returns one line, such as: bt: expected an address, found "12"
func (e *SyntaxError) Error() string {
	found := "nothing"
	if e.Got != "" {
		found = strconv.Quote(e.Got)
	}
	return e.Tag + ": expected " + e.Expected + ", found " + found
}

// A fault is what a SyntaxError is made from. Unlike one it costs nothing: the scanner only asks whether there is any.
type fault struct {
	off, end int    // what was found, in the fields
	expected string // "" if there is no fault
}

// report returns the fault as an error about the fields of an element, which begin at base; nil if there is no fault.
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
