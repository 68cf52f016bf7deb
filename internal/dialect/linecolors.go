package dialect

import (
	"bytes"
	"sort"
)

const (
	esc         = 0x1b
	maxSequence = 64 // bytes of the parameters of a removed escape sequence
)

// A bare is a line without its colours. It omits escape sequences that set a colour (ESC[31m) or
// erase the rest of the line (ESC[K), and ESC(B, which tput prints with a colour.
type bare struct {
	text []byte
	cuts []cut
}

// A cut is an offset in a bare's text at which escape sequences were removed.
type cut struct {
	at    int // offset in the text
	total int // bytes removed so far
}

// sequenceLen returns the length of the removable escape sequence that begins with the ESC at b[0],
// or 0.
func sequenceLen(b []byte) int {
	if hasAt(b, 1, "(B") {
		return len("\x1b(B")
	}
	if !hasAt(b, 1, "[") {
		return 0
	}
	for i := 2; i < len(b) && i-2 <= maxSequence; i++ {
		switch c := b[i]; {
		case c == 'm', c == 'K':
			return i + 1
		case c < '0' || c > ';':
			return 0
		}
	}
	return 0
}

// mayEndColor is 1 for the last bytes of removable escape sequences.
var mayEndColor = [256]uint8{'m': 1, 'K': 1, 'B': 1}

// colorEnds reports whether b[:end] ends with a removable escape sequence. end may be negative.
func colorEnds(b []byte, end int) bool {
	return end > 2 && mayEndColor[b[end-1]] != 0 && !isLetter(b[end-2]) && endsSequence(b, end)
}

// endsSequence reports whether the "m", "K" or "B" at the end of b[:end] ends a removable sequence.
func endsSequence(b []byte, end int) bool {
	if b[end-1] == 'B' {
		return endsWith(b, end, "\x1b(B")
	}
	at := end - 1
	for at > 0 && end-1-at < maxSequence && b[at-1] >= '0' && b[at-1] <= ';' {
		at--
	}
	return endsWith(b, at, "\x1b[")
}

// appendBare appends b without its colours to dst. If add is not nil, appendBare calls it for each
// removed sequence, with the length of dst so far and the length of the sequence.
func appendBare(dst, b []byte, add func(at, n int)) []byte {
	for len(b) > 0 {
		i := bytes.IndexByte(b, esc)
		if i < 0 {
			break
		}
		dst = append(dst, b[:i]...)
		n := sequenceLen(b[i:])
		if n == 0 {
			dst = append(dst, esc)
			n = 1
		} else if add != nil {
			add(len(dst), n)
		}
		b = b[i+n:]
	}
	return append(dst, b...)
}

// WithoutColors returns b without colours, as a Reader reads it, or b itself if b has none.
func WithoutColors(b []byte) []byte {
	if bytes.IndexByte(b, esc) < 0 {
		return b
	}
	return appendBare(make([]byte, 0, len(b)), b, nil)
}

// Colors returns the escape sequences in b that a Reader removes, in order, or nil.
func Colors(b []byte) (all [][]byte) {
	for {
		i := bytes.IndexByte(b, esc)
		if i < 0 {
			return all
		}
		b = b[i:]
		n := max(sequenceLen(b), 1)
		if n > 1 {
			all = append(all, b[:n])
		}
		b = b[n:]
	}
}

// set sets the line to text, and reports whether it has colours.
func (p *bare) set(text []byte) bool {
	p.cuts = p.cuts[:0]
	p.text = appendBare(p.text[:0], text, func(at, n int) {
		if k := len(p.cuts); k > 0 {
			n += p.cuts[k-1].total
			if p.cuts[k-1].at == at {
				p.cuts = p.cuts[:k-1]
			}
		}
		p.cuts = append(p.cuts, cut{at, n})
	})
	return len(p.cuts) > 0
}

// behind converts an offset in the bare line to the offset in the whole line. If escape sequences
// were removed at that offset, the result is the offset at which they begin.
func (p *bare) behind(at int) int {
	i := sort.Search(len(p.cuts), func(i int) bool { return p.cuts[i].at >= at })
	if i == 0 {
		return at
	}
	return at + p.cuts[i-1].total
}

// of converts the offset of a byte in the bare line to the offset of the same byte in the whole
// line. If escape sequences were removed before the byte, the result is the offset after them.
func (p *bare) of(at int) int { return p.behind(at+1) - 1 }

// span returns the Span of s in the whole line, without sequences at its ends.
func (p *bare) span(s Span) Span {
	if s.From == s.To {
		return Span{p.behind(s.From), p.behind(s.To)}
	}
	return Span{p.of(s.From), p.behind(s.To)}
}

// restore sets the text of l to text, the whole line, after l was read from the bare line p. It
// converts the offsets in l from the bare line to the whole line.
func (p *bare) restore(l *Line, text []byte) {
	l.Text, l.MapStart = text, p.behind(l.MapStart)
	for i := range l.Frames {
		f := &l.Frames[i]
		// the layout of frames with a key ignores colours, so this frame must not have one
		f.Start, f.Key = p.behind(f.Start), 0
		for _, s := range []*Span{&f.Digits, &f.First, &f.Depth} {
			if s.To > 0 {
				*s = p.span(*s)
			}
		}
		for k := range f.Edits {
			f.Edits[k].Span = p.span(f.Edits[k].Span)
		}
	}
}
