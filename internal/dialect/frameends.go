package dialect

import (
	"bytes"
	"hash/maphash"
)

// frameEnds caches the ends of frames, with the fields parsed from them. An end is the text after
// the address. In a log with many traces, most frames share a few ends.
type frameEnds struct {
	seed  maphash.Seed
	slots *[1 << frameEndBits]frameEnd // nil until the first frame
	keys  uint64                       // the last Frame.Key
}

// A frameEnd is the text after the address of a frame, with its parsed fields. Offsets in the
// fields count from the start of the text.
type frameEnd struct {
	text []byte
	name Span // text that the function replaces
	place
	key uint64 // see Frame.Key; 0 if the end has no build ID
	// set if a line of "    #N 0xADDRESS" and this text can only be a frame of a sanitizer
	alone bool
}

// A FrameEnd holds the fields that depend only on the text after the address of a sanitizer's
// frame.
type FrameEnd struct {
	Key    uint64 // as in Frame
	Module string
	Size   int // bytes of the text without blanks at its end
}

// KnownEnd returns the FrameEnd of a line that begins with "    #N 0xADDRESS". text is the rest of
// the line, without the line end. ok is false unless a frame with the same text and a build ID was
// read before.
func (r *Reader) KnownEnd(text []byte) (e FrameEnd, ok bool) {
	t := r.ends.find(text)
	if t == nil || !t.alone {
		return e, false
	}
	return FrameEnd{t.key, t.module, t.end}, true
}

const (
	frameEndBits = 10      // 1,024 slots, 140 KiB
	maxFrameEnd  = 1 << 10 // bytes of the longest cached end
)

// pair returns the two slots that may contain a text.
func (t *frameEnds) pair(text []byte) (first, second *frameEnd) {
	if t.slots == nil {
		t.seed, t.slots = maphash.MakeSeed(), new([1 << frameEndBits]frameEnd)
	}
	i := maphash.Bytes(t.seed, text) >> (64 - frameEndBits)
	return &t.slots[i], &t.slots[i^1]
}

// find returns the end with this text, or nil. The end is valid until the next add.
func (t *frameEnds) find(text []byte) *frameEnd {
	first, second := t.pair(text)
	switch {
	case bytes.Equal(first.text, text):
		return first
	case bytes.Equal(second.text, text):
		return second
	}
	return nil
}

// add adds and returns the end of a frame with a copy of its text, which is not empty. It does not
// keep an end of more than maxFrameEnd bytes.
func (t *frameEnds) add(text []byte, parsed frameEnd) *frameEnd {
	if len(text) > maxFrameEnd {
		long := parsed
		return &long
	}
	slot, second := t.pair(text)
	if len(slot.text) > 0 && len(second.text) == 0 {
		slot = second
	}
	kept := slot.text[:0]
	*slot = parsed
	if slot.key, slot.alone = 0, false; !parsed.id.IsZero() {
		t.keys++
		slot.key = t.keys
		slot.alone = bytes.IndexByte(text, esc) < 0 && !bytes.Contains(text, rsyslogEnd) && !bytes.Contains(text, []byte("{{{"))
	}
	slot.text = append(kept, text...)
	return slot
}
