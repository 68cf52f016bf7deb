// Package lines cuts a stream of bytes into lines, whatever the pieces in which the stream comes: a
// line in several pieces is joined, and a line that is too long for that is handed out in parts.
package lines

import "bytes"

// A Kind is what Block and Line return.
type Kind uint8

const (
	None  Kind = iota // nothing: what was given belongs to the unfinished line
	Whole             // a line with its end; Block may return several lines
	Head              // the first Max bytes of a line that is longer
	Rest              // more of that line, with the line end if it has come
)

// maxKept bounds the memory that is kept for the next unfinished line, in bytes: a process may read a
// thousand streams.
const maxKept = 128 << 10

// A Cutter cuts one stream. Its memory is bounded by Max. One goroutine at a time may use a Cutter.
//
// What its methods return is part of the argument, or valid until the next call.
type Cutter struct {
	Max int // bytes of a line that is joined, without its end

	tail []byte // the unfinished line so far
	long bool   // the Head of the unfinished line was returned
}

// Block returns what p begins with, and the rest of p: all whole lines in p, as they are, if no
// unfinished line precedes them. They are not looked at one by one, so that one of them may be longer
// than Max.
func (c *Cutter) Block(p []byte) (b []byte, kind Kind, rest []byte) {
	if len(c.tail) == 0 && !c.long {
		if n := bytes.LastIndexByte(p, '\n') + 1; n > 0 {
			return p[:n], Whole, p[n:]
		}
		return c.cut(p, 0)
	}
	return c.cut(p, bytes.IndexByte(p, '\n')+1)
}

// Line is Block for one line: no line that it returns is longer than Max.
func (c *Cutter) Line(p []byte) (line []byte, kind Kind, rest []byte) {
	n := bytes.IndexByte(p, '\n') + 1
	if n > 0 && n <= c.Max && len(c.tail) == 0 && !c.long {
		return p[:n], Whole, p[n:]
	}
	return c.cut(p, n)
}

// cut is Line; the first n bytes of p are those up to and with the line end, 0 without one.
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

// join ends the unfinished line.
func (c *Cutter) join(end []byte) []byte {
	b := append(c.tail, end...)
	if c.tail = b[:0]; cap(b) > maxKept {
		c.tail = nil
	}
	return b
}

// Unfinished returns the unfinished line so far, at most Max bytes. If that line is too long and its
// Head was returned, line is empty and long is true.
func (c *Cutter) Unfinished() (line []byte, long bool) { return c.tail, c.long }

// Resume makes a new Cutter continue a stream of which Unfinished has returned line and long. The
// Cutter keeps line.
func (c *Cutter) Resume(line []byte, long bool) { c.tail, c.long = line, long }

// GiveUp returns the unfinished line so far, as Head would be returned: what follows is its Rest.
func (c *Cutter) GiveUp() []byte {
	c.long = c.long || len(c.tail) > 0
	return c.join(nil)
}

// Finish ends the stream and returns what Unfinished returns. The Cutter may then be used for
// another stream.
func (c *Cutter) Finish() (line []byte, long bool) {
	line, long = c.tail, c.long
	c.Resume(nil, false)
	return line, long
}
