package filter

import "bytes"

// past keeps the log's last lines, since a trace's header may precede its first frame.
type past struct {
	tail  []byte // last lines of earlier blocks
	block []byte // the current block up to the current line
	both  []byte // scratch

	unwrap func(dst, lines []byte) []byte // Dialects.Unwrap
	opened []byte                         // scratch: lines without envelopes
}

const maxPast = 16 << 10 // bytes of earlier lines that a search reaches

// keepPast keeps the end of b, a filtered block of whole lines.
func (t *tracer) keepPast(b []byte) {
	if t == nil {
		return
	}
	p := &t.past
	p.block = nil
	if len(b) >= maxPast {
		p.tail = append(p.tail[:0], b[len(b)-maxPast:]...)
		return
	}
	if len(p.tail)+len(b) > 2*maxPast {
		p.tail = append(p.tail[:0], p.tail[len(p.tail)-maxPast:]...)
	}
	p.tail = append(p.tail, b...)
}

// last returns the last n lines before the current line, without their envelopes. It returns fewer
// lines if no more are kept.
func (p *past) last(n int64) []byte {
	if p.unwrap == nil {
		return p.raw(n)
	}
	// Most lines of a journal entry have no text, so more than n lines are unwrapped. The loop
	// needs more than n texts, since the first may be the empty line that ends an entry.
	for lines := n + 1; ; lines *= 4 {
		raw := p.raw(lines)
		texts := p.texts(raw)
		if int64(bytes.Count(texts, newline)) > n || int64(bytes.Count(raw, newline)) < lines || len(raw) >= maxPast {
			return lastLines(texts, n)
		}
	}
}

// raw returns the same lines as last, but with their envelopes.
func (p *past) raw(n int64) []byte {
	block := p.block[max(0, len(p.block)-maxPast):]
	if len(block) == 0 {
		return lastLines(p.tail[max(0, len(p.tail)-maxPast):], n)
	}
	if lines := lastLines(block, n); len(lines) < len(block) || len(block) == maxPast || len(p.tail) == 0 {
		return lines
	}
	tail := p.tail[max(0, len(p.tail)-maxPast+len(block)):]
	p.both = append(append(p.both[:0], tail...), block...)
	return lastLines(p.both, n)
}

// searched returns the lines of raw for a search. In a journal it removes the envelopes, since a
// text may be an array of bytes there, in which a search finds nothing.
func (p *past) searched(n int64) []byte {
	b := p.raw(n)
	if p.unwrap != nil && bytes.Contains(b, []byte(`"MESSAGE"`)) {
		return p.texts(b)
	}
	return b
}

func (p *past) texts(b []byte) []byte {
	if p.unwrap == nil {
		return b
	}
	p.opened = p.unwrap(p.opened[:0], b)
	return p.opened
}

// lastLines returns the last n lines of b, which ends with a line end. The first line of b may be
// incomplete.
func lastLines(b []byte, n int64) []byte {
	at := len(b)
	for ; n > 0 && at > 0; n-- {
		at = bytes.LastIndexByte(b[:at-1], '\n') + 1
	}
	return b[at:]
}
