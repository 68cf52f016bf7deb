package input

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// members unpacks the members of a compressed input, which are files of one codec after each other,
// and passes on what follows them: that is text. An error of a decoder is returned once; the next
// Read returns what is readable after the damage.
type members struct {
	codec  *codec
	memory *lease
	tape   *tape
	b      *bufio.Reader // of the tape

	z        io.Reader // the current member; nil between members
	last     io.Reader // z, or the reader of the member before
	read     int64     // offset up to which the decoder had read when it returned the last bytes
	unpacked bool      // a member was unpacked, or the first byte of one
	rest     io.Reader // what follows the members; nil until then
	salvage  *salvage  // rest, after damage
	refused  error     // of a decoder, for what only begins like a member
}

func newMembers(c *codec, packed io.Reader, memory *lease) *members {
	m := &members{codec: c, memory: memory, tape: &tape{r: packed}}
	m.b = bufio.NewReader(m.tape)
	return m
}

func (m *members) Read(p []byte) (int, error) {
	for {
		if m.rest != nil {
			return m.rest.Read(p)
		}
		if m.z == nil {
			if err := m.next(); err != nil {
				return 0, err
			}
			continue
		}
		before := m.at()
		n, err := m.z.Read(p)
		if n > 0 {
			m.unpacked, m.read, m.tape.mark = true, m.at(), before
		}
		switch {
		case err == io.EOF:
			m.z, m.unpacked, m.tape.mark = nil, true, m.at()
		case err != nil:
			return n, m.failed(err)
		}
		if n > 0 || len(p) == 0 {
			return n, nil
		}
	}
}

// first opens the first member. An input that only begins like one is an error.
func (m *members) first() error {
	if err := m.next(); err != nil {
		return err
	}
	if m.rest != nil {
		return cmp.Or(m.refused, fmt.Errorf("%s: invalid header", m.codec.name))
	}
	return nil
}

// at returns the offset of the next byte that a decoder reads.
func (m *members) at() int64 { return m.tape.end - int64(m.b.Buffered()) }

// maxSkipped bounds the skippable frames of zstd before a frame, in bytes, after the first one: a
// table for seeking follows the last one. The first frame must begin within headSize.
const maxSkipped = 1 << 20

// next opens the next member, or sets rest to what follows the members.
func (m *members) next() error {
	if m.codec.padded && m.unpacked {
		if err := m.skipZeros(); err != nil {
			return err
		}
	}
	for skipped := int64(0); ; {
		c, head, err := peekCodec(m.b)
		switch {
		case len(head) == 0 && (err != io.EOF || skipped == 0 || m.unpacked):
			return err
		case c != m.codec:
			m.rest = m.since()
			return nil
		case !isSkippable(head):
			return m.open()
		}
		head, _ = m.b.Peek(8)
		if len(head) == 8 {
			skipped += 8 + int64(binary.LittleEndian.Uint32(head[4:]))
		}
		if len(head) < 8 || skipped > maxSkipped || skipped > headSize && !m.unpacked {
			m.rest = m.since()
			return nil
		}
		m.b.Discard(8 + int(binary.LittleEndian.Uint32(head[4:]))) // the next Peek returns an error
	}
}

// skipZeros skips the zeros after a member, which tapes and copies of blocks add.
func (m *members) skipZeros() error {
	for {
		c, err := m.b.ReadByte()
		if err != nil {
			return err
		}
		if c != 0 {
			m.b.UnreadByte()
			m.tape.mark = m.at()
			return nil
		}
	}
}

// open opens the member at the current place.
func (m *members) open() error {
	z, err := m.codec.member(m.b, m.memory, m.last)
	if err != nil {
		return m.failed(err)
	}
	m.z, m.last = guarded{z}, z
	return nil
}

// failed returns the error for one of the decoder, and sets rest to what is read next. An input of
// which nothing was unpacked only begins like a compressed one, and is text: a few bytes at the head
// of a log must not prevent it from being read. A decoder of gzip may return bytes after it has found
// the damage: what it read for them is read again.
func (m *members) failed(err error) error {
	if m.tape.err != nil && m.tape.err != io.EOF {
		return m.tape.err
	}
	if whole := m.tape.start() <= m.tape.mark; whole && !m.unpacked && !errors.Is(err, ErrNoMemory) && !(m.z != nil && isEnd(err)) {
		m.z, m.rest, m.refused = nil, m.since(), err
		return nil
	}
	if m.z != nil && m.at() > m.read {
		m.tape.mark = max(m.tape.mark, m.read)
	}
	m.salvage = &salvage{b: bufio.NewReader(m.since())}
	m.z, m.rest = nil, m.salvage
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// since returns the bytes from the mark on.
func (m *members) since() io.Reader {
	kept := m.tape.kept[max(0, m.tape.mark-m.tape.start()):]
	return io.MultiReader(bytes.NewReader(kept), m.tape.r)
}

// isEnd reports whether a decoder's error is due to missing bytes.
func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// peekCodec returns the codec of what b holds next, by as few bytes as possible.
func peekCodec(b *bufio.Reader) (c *codec, head []byte, err error) {
	for n, undecided := 1, true; undecided && err == nil; n++ {
		head, err = b.Peek(n)
		c, undecided = codecOf(head)
	}
	return c, head, err
}

// A tape keeps the last bytes that were read from it: those from the mark on, and at least the last
// maxKept bytes of these.
type tape struct {
	r    io.Reader
	kept []byte
	end  int64 // offset after kept
	mark int64 // offset of the first byte that is needed
	err  error // of r
}

// maxKept is the number of bytes that may decide whether a member is one. Before the first unpacked
// byte, gzip has a header of 64 KiB, and bzip2 a block of some 900 KB.
const maxKept = 2 << 20

// start returns the offset of the first byte that is kept.
func (t *tape) start() int64 { return t.end - int64(len(t.kept)) }

func (t *tape) Read(p []byte) (n int, err error) {
	n, err = t.r.Read(p)
	t.err = err
	drop := min(int64(len(t.kept)), max(t.mark-t.start(), 0))
	if len(t.kept) > 2*maxKept {
		drop = max(drop, int64(len(t.kept)-maxKept))
	}
	if drop > int64(len(t.kept)/2) { // copies no byte often
		t.kept = t.kept[:copy(t.kept, t.kept[drop:])]
	}
	t.kept = append(t.kept, p[:n]...)
	t.end += int64(n)
	return n, err
}

// textRun is the number of bytes of text that end the damage: random bytes have no such run.
const textRun = 64

// A salvage passes on what is read after damage, from the first textRun bytes of text on. At the end,
// fewer ones with a line end suffice.
type salvage struct {
	b    *bufio.Reader
	text bool  // the text has begun
	lost int64 // bytes before it
}

func (s *salvage) Read(p []byte) (int, error) {
	for !s.text {
		run, err := s.b.Peek(textRun)
		n := textLen(run)
		switch {
		case len(run) == 0:
			return 0, err
		case n < len(run):
			n++
		case err == nil || run[n-1] == '\n':
			s.text = true
			continue
		}
		s.b.Discard(n)
		s.lost += int64(n)
	}
	return s.b.Read(p)
}

// textLen returns how many bytes at the beginning of b are text: UTF-8 without control characters
// except those of lines and colours. b may end within a character.
func textLen(b []byte) int {
	for i := 0; i < len(b); {
		switch c := b[i]; {
		case c >= utf8.RuneSelf:
			r, size := utf8.DecodeRune(b[i:])
			if r == utf8.RuneError && size == 1 {
				if i > 0 && !utf8.FullRune(b[i:]) {
					return len(b)
				}
				return i
			}
			i += size
		case c >= ' ' && c != 0x7f, c == '\n', c == '\r', c == '\t', c == 0x1b:
			i++
		default:
			return i
		}
	}
	return len(b)
}
