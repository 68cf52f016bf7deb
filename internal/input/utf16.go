package input

import (
	"bufio"
	"bytes"
	"io"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/symfilter/symfilter/internal/unpack"
)

// An Encoding is the encoding of an input's text.
type Encoding uint8

// The encodings. [Encoding.Marked] reports which begin with a byte order mark.
const (
	UTF8 Encoding = iota
	UTF16LE
	UTF16BE
	UnmarkedUTF16LE // passed on unchanged
	UnmarkedUTF16BE // passed on unchanged
	UTF32LE         // passed on unchanged
)

var encodingNames = [...]string{"UTF-8", "UTF-16LE", "UTF-16BE", "UTF-16LE", "UTF-16BE", "UTF-32LE"}

func (e Encoding) String() string { return encodingNames[e] }

// Marked reports whether text in the encoding begins with a byte order mark.
func (e Encoding) Marked() bool { return e != UTF8 && e != UnmarkedUTF16LE && e != UnmarkedUTF16BE }

// Read reports whether the Writer passes on the text as UTF-8. Text in other encodings is passed on
// unchanged.
func (e Encoding) Read() bool { return e < UnmarkedUTF16LE }

const (
	markLE = "\xff\xfe"
	markBE = "\xfe\xff"
)

// encodingOf returns the encoding of an input that begins with head. undecided means that more
// bytes are needed. A byte order mark alone is not enough: a Latin-1 character must follow within
// the head, as in any text with blanks or line ends. If two zeros follow a UTF-16LE mark, the mark
// is UTF-32LE's, provided that the next character ends with two zeros, too.
func encodingOf(head []byte, until extent) (e Encoding, undecided bool) {
	if len(head) >= headSize {
		head, until = head[:headSize], full
	}
	switch {
	case begins(markLE, head), begins(markBE, head):
		return UTF8, until == more
	case bytes.HasPrefix(head, []byte(markLE)):
		e = UTF16LE
	case bytes.HasPrefix(head, []byte(markBE)):
		e = UTF16BE
	default:
		return UTF8, false
	}
	for i := 2; i+1 < len(head); i += 2 {
		high, low := head[i], head[i+1]
		if e == UTF16LE {
			high, low = low, high
		}
		switch {
		case i == 2 && high == 0 && low == 0 && e == UTF16LE && len(head) >= 8 && head[6] == 0 && head[7] == 0:
			return UTF32LE, false
		case i == 2 && high == 0 && low == 0:
			return UTF8, until == more && len(head) < 8
		case high == 0 && low != 0:
			return e, false
		}
	}
	return UTF8, until == more
}

// onlyMark reports whether an input so far has only a UTF-16 byte order mark: a program may open
// its log long before its first line.
func onlyMark(head []byte) bool { return string(head) == markLE || string(head) == markBE }

// A utf16Decoder converts UTF-16 to UTF-8. An unpaired surrogate, or half a unit at the end,
// becomes U+FFFD. A byte order mark at the start of a line begins another file of a rotated log: it
// is removed, and may change the byte order.
//
// Any bytes are valid UTF-16: UTF-8 text would become Chinese characters. So the decoder keeps the
// bytes after a Latin-1 character, such as a blank or a line end, until the next one. If none comes
// within headSize, or if unpack.TextRun bytes look like text with a line end, the input is not
// UTF-16. These and all later bytes are then passed on unchanged.
type utf16Decoder struct {
	big bool // the high byte comes first

	kept    []byte // bytes after the last Latin-1 character, at most headSize
	run     int    // index in kept: kept[run:] may be text other than UTF-16
	bytes   bool   // the text is no longer UTF-16
	high    rune   // first surrogate of a pair; 0: none
	midLine bool   // the last unit did not end a line

	buf []byte
}

// decode returns the text that p completes. The next call overwrites it.
func (d *utf16Decoder) decode(p []byte) []byte {
	if d.bytes {
		return p
	}
	d.buf = d.buf[:0]
	i := len(d.kept) &^ 1
	d.kept = append(d.kept, p...)
	all, at := d.kept, 0 // all[at:] stays in kept
	for ; i+1 < len(all); i += 2 {
		low, high := all[i], all[i+1]
		if d.big {
			low, high = high, low
		}
		mark := i == at && !d.midLine && (low == 0xff && high == 0xfe || low == 0xfe && high == 0xff)
		if mark || high == 0 && low != 0 {
			d.units(all[at : i+2])
			at, d.run = i+2, 0
			continue
		}
		n := i + 2 - at
		if n%unpack.TextRun != 0 {
			continue
		}
		if run := d.textOf(all[at : i+2]); run >= 0 {
			at += d.units(all[at : at+run])
		} else if n < headSize {
			continue
		}
		if d.high != 0 {
			d.buf = utf8.AppendRune(d.buf, utf8.RuneError)
		}
		d.bytes, d.kept = true, nil
		return append(d.buf, all[at:]...)
	}
	d.kept = append(all[:0], all[at:]...)
	return d.buf
}

// textOf returns the index in kept at which a run of text other than UTF-16 begins that continues
// to the end of kept; -1 if there is none.
func (d *utf16Decoder) textOf(kept []byte) int {
	for n := unpack.TextLen(kept[d.run:]); d.run+n < len(kept); n = unpack.TextLen(kept[d.run:]) {
		d.run += n + 1
	}
	if run := kept[d.run:]; len(run) >= unpack.TextRun && hasLines(run) {
		return d.run
	}
	return -1
}

// hasLines reports whether b has line ends, but in less than half of its bytes: in UTF-16, each
// letter of Gurmukhi, U+0A15 to U+0A7E, has the byte of a line end.
func hasLines(b []byte) bool { n := bytes.Count(b, newline); return n > 0 && 2*n < len(b) }

// isText reports whether the kept bytes may be UTF-8 text.
func (d *utf16Decoder) isText() bool { return unpack.TextLen(d.kept) == len(d.kept) }

// unfinished reports whether flush returns something.
func (d *utf16Decoder) unfinished() bool { return len(d.kept) > 1 && !d.isText() }

// flush returns the text of the kept bytes. It returns nothing if these bytes may be UTF-8, since
// later bytes decide.
func (d *utf16Decoder) flush() []byte {
	d.buf = d.buf[:0]
	if d.unfinished() {
		n := d.units(d.kept)
		d.kept, d.run = append(d.kept[:0], d.kept[n:]...), 0
	}
	return d.buf
}

// units appends the text of whole units, and returns the number of their bytes.
func (d *utf16Decoder) units(b []byte) int {
	for i := 0; i+1 < len(b); i += 2 {
		d.unit(b[i], b[i+1])
	}
	return len(b) &^ 1
}

// unit appends the text of a unit. The first surrogate of a pair waits for the next unit.
func (d *utf16Decoder) unit(first, second byte) {
	c := rune(second)<<8 | rune(first)
	if d.big {
		c = rune(first)<<8 | rune(second)
	}
	if d.high != 0 {
		high := d.high
		d.high = 0
		if r := utf16.DecodeRune(high, c); r != utf8.RuneError {
			d.buf = utf8.AppendRune(d.buf, r)
			return
		}
		d.buf = utf8.AppendRune(d.buf, utf8.RuneError)
	}
	switch {
	case c < utf8.RuneSelf:
		d.buf = append(d.buf, byte(c))
	case c == 0xfeff && !d.midLine:
		return
	case c == 0xfffe && !d.midLine:
		d.big = !d.big
		return
	case 0xd800 <= c && c < 0xdc00:
		d.high = c
	default:
		d.buf = utf8.AppendRune(d.buf, c) // U+FFFD for an unpaired second surrogate
	}
	d.midLine = c != '\n'
}

// end returns the text of the kept bytes at the end of the input.
func (d *utf16Decoder) end() []byte {
	d.buf = d.buf[:0]
	if d.isText() && hasLines(d.kept) {
		d.buf = append(d.buf, d.kept...)
	} else if n := d.units(d.kept); n < len(d.kept) || d.high != 0 {
		d.buf = utf8.AppendRune(d.buf, utf8.RuneError)
	}
	d.kept, d.high = nil, 0
	return d.buf
}

// A utf16Reader reads UTF-16 from r, and returns it as UTF-8.
type utf16Reader struct {
	r       io.Reader
	decoder utf16Decoder
	text    []byte // decoded text, not read yet
	err     error  // error of r
}

func (r *utf16Reader) Read(p []byte) (int, error) {
	for len(r.text) == 0 {
		if r.err != nil {
			return 0, r.err
		}
		var block [16 << 10]byte
		var n int
		n, r.err = r.r.Read(block[:])
		if r.text = r.decoder.decode(block[:n]); r.err == io.EOF && len(r.text) == 0 {
			r.text = r.decoder.end()
		}
	}
	n := copy(p, r.text)
	r.text = r.text[n:]
	return n, nil
}

// recoded returns a reader of the text of r as UTF-8.
func recoded(r *bufio.Reader) io.Reader {
	head, _ := r.Peek(headSize)
	switch e, _ := encodingOf(head, full); e {
	case UTF16LE, UTF16BE:
		return &utf16Reader{r: r, decoder: utf16Decoder{big: e == UTF16BE}}
	}
	return r
}

// A zeroWatch detects whether every second byte at the start of an input is 0, as in UTF-16 text.
// It needs 16 bytes.
type zeroWatch struct {
	n    int
	zero [2]int // zero bytes at even and odd places
}

const watchedBytes = 16

// look takes the next bytes, and returns the encoding that they suggest, or UTF8.
func (z *zeroWatch) look(p []byte) Encoding {
	if z.n >= watchedBytes {
		return UTF8
	}
	for _, c := range p[:min(len(p), watchedBytes-z.n)] {
		if c == 0 {
			z.zero[z.n%2]++
		}
		z.n++
	}
	switch half := watchedBytes / 2; {
	case z.n < watchedBytes:
	case z.zero == [2]int{half, 0}:
		return UnmarkedUTF16BE
	case z.zero == [2]int{0, half}:
		return UnmarkedUTF16LE
	}
	return UTF8
}
