// Package lines cuts a stream of bytes into lines, however the stream is divided into pieces. A
// line from several pieces is joined, or returned in parts if it is too long.
package lines

import "bytes"

// A Kind describes the bytes that Block or Line returns.
type Kind uint8

const (
	None  Kind = iota // nothing: the bytes belong to the unfinished line
	Whole             // a line with its line end; from Block, possibly several lines
	Head              // the first Max bytes of a line that is longer
	Rest              // more of that line, with the line end if it has arrived
)

// maxKept bounds the memory, in bytes, that a Cutter keeps between lines: a process may read a
// thousand streams.
const maxKept = 128 << 10

// A Cutter cuts one stream into lines. Max bounds its memory. One goroutine at a time may use a
// Cutter.
//
// Its methods return parts of the argument, or slices that are valid until the next call.
type Cutter struct {
	Max int // bytes of the longest line that is joined, without its line end

	tail []byte // the unfinished line so far
	long bool   // the Head of the unfinished line was returned
}

// Block returns the first part of p, and the rest. If the Cutter has no unfinished line, the first
// part is all whole lines of p. Block does not examine these lines: they may be longer than Max.
func (c *Cutter) Block(p []byte) (b []byte, kind Kind, rest []byte) {
	if len(c.tail) == 0 && !c.long {
		if n := bytes.LastIndexByte(p, '\n') + 1; n > 0 {
			return p[:n], Whole, p[n:]
		}
		return c.cut(p, 0)
	}
	return c.cut(p, bytes.IndexByte(p, '\n')+1)
}

// Line is like Block, but returns one line at a time. A Whole line has at most Max bytes before its
// line end.
func (c *Cutter) Line(p []byte) (line []byte, kind Kind, rest []byte) {
	n := bytes.IndexByte(p, '\n') + 1
	if n > 0 && n <= c.Max && len(c.tail) == 0 && !c.long {
		return p[:n], Whole, p[n:]
	}
	return c.cut(p, n)
}

// cut is Line for a p whose first line has n bytes with its line end. n is 0 if p has no line end.
func (c *Cutter) cut(p []byte, n int) (b []byte, kind Kind, rest []byte) {
	text := n - 1
	if n == 0 {
		text = len(p)
	}
	room := c.Max - len(c.tail)
	switch {
	case c.long && n == 0:
		return p, Rest, nil
	case c.long:
		c.long = false
		return p[:n], Rest, p[n:]
	case text > room:
		c.long = true
		if len(c.tail) == 0 {
			return p[:room], Head, p[room:]
		}
		return c.join(p[:room]), Head, p[room:]
	case n == 0:
		c.tail = append(c.tail, p...)
		return nil, None, nil
	case len(c.tail) == 0:
		return p[:n], Whole, p[n:]
	}
	return c.join(p[:n]), Whole, p[n:]
}

// join returns the unfinished line with its last bytes, end, and starts a new one.
func (c *Cutter) join(end []byte) []byte {
	b := append(c.tail, end...)
	if c.tail = b[:0]; cap(b) > maxKept {
		c.tail = nil
	}
	return b
}

// IsEmpty reports whether the next byte begins a line.
func (c *Cutter) IsEmpty() bool { return len(c.tail) == 0 && !c.long }

// Unfinished returns the unfinished line so far, at most Max bytes. If its Head was returned, line
// is empty and long is true. The Cutter is unchanged.
func (c *Cutter) Unfinished() (line []byte, long bool) { return c.tail, c.long }

// Resume makes a new Cutter continue after Unfinished returned line and long. The Cutter takes
// ownership of line.
func (c *Cutter) Resume(line []byte, long bool) { c.tail, c.long = line, long }

// GiveUp returns the unfinished line so far as a Head. The bytes that follow are its Rest.
func (c *Cutter) GiveUp() []byte {
	c.long = c.long || len(c.tail) > 0
	return c.join(nil)
}

// Finish ends the stream and returns the same as Unfinished. Another stream may follow.
func (c *Cutter) Finish() (line []byte, long bool) {
	line, long = c.tail, c.long
	c.Resume(nil, false)
	return line, long
}

// CutEnd returns a line's text and its line end: "\n", "\r\n" or nothing.
func CutEnd(b []byte) (text, eol []byte) {
	n := len(b)
	if n > 0 && b[n-1] == '\n' {
		n--
		if n > 0 && b[n-1] == '\r' {
			n--
		}
	}
	return b[:n], b[n:]
}
