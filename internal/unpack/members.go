package unpack

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Reader unpacks the members of a compressed file, and passes on the text after them. Members are
// successive files of one format. A Reader reads no more than it needs for the bytes that it
// returns. It returns a decoder's error once; the next Read continues with readable text after the
// damage. The caller bounds the unpacked size. A Reader is not safe for concurrent use.
type Reader struct {
	format *Format
	memory *lease
	tape   *tape
	b      *bufio.Reader // reads the tape

	z        io.Reader // the current member; nil between members
	last     io.Reader // z, or the preceding member's reader
	read     int64     // offset up to which the decoder had read when it returned the last bytes
	unpacked bool      // a member was unpacked, or the first byte of one
	rest     io.Reader // the bytes after the members; nil before their end
	salvage  *salvage  // same as rest after damage; otherwise nil
	refused  error     // a decoder's error for bytes that only begin like a member
}

// NewReader returns a Reader of packed. Bytes that only begin like a file of the format are passed
// on unchanged. The Reader holds memory for its decoders until Close. If memory has too little,
// Read returns an error that wraps [ErrNoMemory].
func (f *Format) NewReader(packed io.Reader, memory *Memory) *Reader {
	m := &Reader{format: f, memory: &lease{of: memory}, tape: &tape{r: packed}}
	m.b = bufio.NewReader(m.tape)
	return m
}

// Open is like NewReader, but returns an error if the first member has an invalid header.
func (f *Format) Open(packed io.Reader, memory *Memory) (*Reader, error) {
	m := f.NewReader(packed, memory)
	err := m.next()
	if err == nil && m.rest != nil {
		err = cmp.Or(m.refused, fmt.Errorf("%s: invalid header", f))
	}
	if err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

// All returns the unpacked bytes of packed. The parameter most bounds these bytes and the decoder's
// memory. All fails at this bound, or if other bytes follow the members.
func (f *Format) All(packed io.Reader, most int) ([]byte, error) {
	m, err := f.Open(packed, NewMemory(int64(most)))
	if err != nil {
		return nil, err
	}
	defer m.Close()
	b, err := io.ReadAll(io.LimitReader(m, int64(most)+1))
	switch {
	case err != nil:
		return nil, err
	case len(b) > most:
		return nil, fmt.Errorf("more than %d bytes when unpacked", most)
	case m.rest != nil:
		return nil, fmt.Errorf("bytes that are not %s follow the file", f)
	}
	return b, nil
}

// Close gives the memory back. It does not close the packed file.
func (m *Reader) Close() error {
	m.memory.end()
	return nil
}

// Unpacked reports whether a byte, or a whole empty member, was unpacked.
func (m *Reader) Unpacked() bool { return m.unpacked }

// Lost returns the number of bytes after damage that were dropped so far.
func (m *Reader) Lost() int64 {
	if m.salvage == nil {
		return 0
	}
	return m.salvage.lost
}

func (m *Reader) Read(p []byte) (int, error) {
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

// Reader.at returns the offset of the next byte that a decoder reads.
func (m *Reader) at() int64 { return m.tape.end - int64(m.b.Buffered()) }

// Bounds, in bytes, of the skippable frames of a zstd file: maxSkippedFirst before the first other
// frame, maxSkipped later. A table for seeking may follow the last frame.
const (
	maxSkippedFirst = 4 << 10
	maxSkipped      = 1 << 20
)

func (m *Reader) next() error {
	if m.format.padded && m.unpacked {
		if err := m.skipZeros(); err != nil {
			return err
		}
	}
	for skipped := int64(0); ; {
		f, head, err := peekFormat(m.b)
		switch {
		case len(head) == 0 && (err != io.EOF || skipped == 0 || m.unpacked):
			return err
		case f != m.format:
			m.rest = m.since()
			return nil
		case !isSkippable(head):
			return m.open()
		}
		head, _ = m.b.Peek(8)
		if len(head) == 8 {
			skipped += 8 + int64(binary.LittleEndian.Uint32(head[4:]))
		}
		if len(head) < 8 || skipped > maxSkipped || skipped > maxSkippedFirst && !m.unpacked {
			m.rest = m.since()
			return nil
		}
		m.b.Discard(8 + int(binary.LittleEndian.Uint32(head[4:]))) // the next Peek repeats an error
	}
}

// skipZeros skips the zeros after a member. Tapes and copies of blocks add them.
func (m *Reader) skipZeros() error {
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

func (m *Reader) open() error {
	z, err := m.format.member(m.b, m.memory, m.last)
	if err != nil {
		return m.failed(err)
	}
	m.z, m.last = guarded{z}, z
	return nil
}

// failed handles an error of a decoder, and sets m.rest to a reader of the following bytes. If
// nothing was unpacked yet, the input is taken for text: m.rest reads all of it, and failed returns
// nil. If bytes were unpacked, memory is lacking or the member is cut off, failed returns the
// error, and m.rest searches for text after the damage. A gzip decoder may return bytes from after
// the damage: m.rest reads the input of these bytes again.
func (m *Reader) failed(err error) error {
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

func (m *Reader) since() io.Reader {
	kept := m.tape.kept[max(0, m.tape.mark-m.tape.start()):]
	return io.MultiReader(bytes.NewReader(kept), m.tape.r)
}

func isEnd(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// peekFormat returns the format of the next bytes of b. It reads as few bytes as possible.
func peekFormat(b *bufio.Reader) (f *Format, head []byte, err error) {
	for n, undecided := 1, true; undecided && err == nil; n++ {
		head, err = b.Peek(n)
		f, undecided = FormatOf(head)
	}
	return f, head, err
}

// A tape keeps the bytes read since the mark. If they grow beyond 2*maxKept bytes, it drops all
// but the last maxKept.
type tape struct {
	r    io.Reader
	kept []byte
	end  int64 // offset after kept
	mark int64 // offset of the first byte that is needed
	err  error // error of r
}

// maxKept is the number of bytes that a tape keeps, enough to decide whether a member is valid. The
// first unpacked byte may come after a gzip header of 64 KiB, or a bzip2 block of about 900 KB.
const maxKept = 2 << 20

func (t *tape) start() int64 { return t.end - int64(len(t.kept)) }

func (t *tape) Read(p []byte) (n int, err error) {
	n, err = t.r.Read(p)
	t.err = err
	drop := min(int64(len(t.kept)), max(t.mark-t.start(), 0))
	if len(t.kept) > 2*maxKept {
		drop = max(drop, int64(len(t.kept)-maxKept))
	}
	if drop > int64(len(t.kept)/2) { // each byte is copied few times
		t.kept = t.kept[:copy(t.kept, t.kept[drop:])]
	}
	t.kept = append(t.kept, p[:n]...)
	t.end += int64(n)
	return n, err
}
