package daemon

import (
	"bytes"
	"fmt"
)

type framing uint8

const (
	byLines framing = iota // a message ends with a line end
	// each message follows its length, as in "11 <13>message": RFC 6587 section 3.4.1
	byOctets
	// byOctets if the stream begins with a length and a priority, otherwise byLines
	byEither
)

func framingOf(name string) (framing, error) {
	switch name {
	case "", "lines":
		return byLines, nil
	case "octets":
		return byOctets, nil
	case "auto":
		return byEither, nil
	}
	return 0, fmt.Errorf("framing: %q is not one of lines, octets and auto", name)
}

const (
	smallFrame = 4 << 10 // bytes of the buffer for a quiet stream
	shrinkFrom = 8       // consecutive small reads before a large buffer is released
	maxDigits  = 9       // digits in the length of a message
)

// A framer cuts a stream into whole lines. A message with a length may have several lines, and gets
// a missing final line end. A framer is not safe for concurrent use.
type framer struct {
	framing framing
	most    int // maximum bytes of a line, raised to smallFrame; longer lines are cut
	// add a line end to cut lines, and to a last line without a line end: lines of other streams
	// may follow
	end bool

	// grow requests n bytes beyond the first block, or releases -n bytes. If it returns false, the
	// line is cut.
	grow func(n int) bool
	// malformed is called if a message does not begin with a valid length. text begins where the
	// length should be.
	malformed func(text []byte)

	buf   []byte // has capacity for an added line end
	have  int    // bytes in buf
	given int    // bytes of buf returned by take
	few   int    // consecutive small reads
	need  int    // missing bytes of the current message; 0: a length follows
	line  bool   // the current line has no length
	out   []byte
}

// room returns the memory for the next read.
func (f *framer) room() []byte {
	f.have = copy(f.buf, f.buf[f.given:f.have])
	f.given = 0
	if f.buf == nil || f.few >= shrinkFrom && len(f.buf) > smallFrame && f.have < smallFrame {
		f.resize(smallFrame)
	}
	return f.buf[f.have:]
}

// resize sets the size of the buffer. It returns false if grow refuses the size.
func (f *framer) resize(n int) bool {
	if more := max(0, n-block) - max(0, len(f.buf)-block); more != 0 && f.grow != nil && !f.grow(more) && more > 0 {
		return false
	}
	buf := make([]byte, n, n+1)
	copy(buf, f.buf[:f.have])
	f.buf, f.few = buf, 0
	return true
}

// take is called after n bytes were read into the result of room. It returns the whole lines so
// far, or a part of a line that exceeds f.most. The result is valid until the next call of room.
func (f *framer) take(n int) []byte {
	f.have += n
	if f.few++; n > smallFrame/2 {
		f.few = 0
	}
	if f.framing == byEither && !f.decide() {
		return nil
	}
	lines := f.cut()
	if f.given > 0 || f.have < len(f.buf) {
		return lines
	}
	if most := max(f.most, smallFrame); len(f.buf) < most {
		if f.resize(min(block, most)) && f.have < len(f.buf) || f.resize(most) {
			return lines
		}
	}
	f.given = f.have // cut the long line
	if f.need > 0 {
		f.need = max(0, f.need-f.have)
	}
	return f.ended(f.buf[:f.have])
}

// ended returns line. If f.end is set, it first appends a missing line end.
func (f *framer) ended(line []byte) []byte {
	if n := len(line); f.end && n > 0 && line[n-1] != '\n' {
		line = append(line, '\n')
	}
	return line
}

// rest returns the remaining bytes at the end of the stream.
func (f *framer) rest() []byte {
	left := f.buf[f.given:f.have]
	f.given = f.have
	return f.ended(left)
}

func (f *framer) left() []byte { return f.buf[f.given:f.have] }

func (f *framer) free() {
	f.have, f.given = 0, 0
	f.resize(0)
}

// decide selects the framing by the first bytes of the stream. It returns false if it needs more
// bytes.
func (f *framer) decide() bool {
	_, size, state := length(f.buf[:f.have])
	switch {
	case state == unfinished || state == valid && size == f.have:
		return false
	case state == valid && f.buf[size] == '<': // priority of a syslog message
		f.framing = byOctets
	default:
		f.framing = byLines
	}
	return true
}

// cut returns the complete lines or messages in the buffer, and moves f.given to their end.
func (f *framer) cut() []byte {
	if f.framing == byLines {
		f.given = lastLineEnd(f.buf[:f.have])
		return f.buf[:f.given]
	}
	f.out = f.out[:0]
	if cap(f.out) > block && f.few > shrinkFrom {
		f.out = nil
	}
	for f.next() {
	}
	return f.out
}

// next reads the length of a message, a message, or a line without a length, and appends complete
// messages and lines to f.out. It returns false if more bytes are needed.
func (f *framer) next() bool {
	b := f.buf[f.given:f.have]
	switch {
	case len(b) == 0:
		return false
	case f.need > 0:
		if len(b) < f.need {
			return false
		}
		f.out = append(f.out, b[:f.need]...)
		if b[f.need-1] != '\n' {
			f.out = append(f.out, '\n')
		}
		f.given += f.need
		f.need = 0
	case f.line:
		n := bytes.IndexByte(b, '\n') + 1
		if n == 0 {
			return false
		}
		f.out = append(f.out, b[:n]...)
		f.given += n
		f.line = false
	case b[0] == '\n': // some senders add a line feed after the message's length
		f.given++
	default:
		n, size, state := length(b)
		switch {
		case state == unfinished:
			return false
		case state == valid && n <= max(f.most, smallFrame):
			f.need = n
			f.given += size
		default:
			f.line = true
			if f.malformed != nil {
				f.malformed(b)
			}
		}
	}
	return true
}

const (
	invalid = iota
	unfinished
	valid
)

// length parses the length of a message at the start of b. state is valid, unfinished or invalid.
// size is the number of bytes before the message, with the blank after the length.
func length(b []byte) (n, size, state int) {
	for i, c := range b {
		switch {
		case c == ' ' && i > 0:
			return n, i + 1, valid
		case c < '0' || c > '9' || c == '0' && i == 0 || i == maxDigits:
			return 0, 0, invalid
		}
		n = 10*n + int(c-'0')
	}
	return 0, 0, unfinished
}
