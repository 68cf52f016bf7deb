package dialect

import (
	"bytes"
	"hash/maphash"
)

// tails caches the parsed ends of frames: in a log with many traces most frames are in few places,
// and only their numbers and addresses differ.
type tails struct {
	seed  maphash.Seed
	slots *[1 << tailBits]tail // nil until the first frame
	keys  uint64               // the last Frame.Key
}

// A tail is the text of a line after the address of a frame. Offsets are from its beginning.
type tail struct {
	text []byte
	name Span // the text that the function replaces
	place
	key uint64 // see Frame.Key; 0 if the tail has no build ID
}

const (
	tailBits = 10      // 1,024 slots, 140 KiB
	maxTail  = 1 << 10 // bytes of the longest tail that is cached
)

// pair returns the two slots in which a text may be.
func (t *tails) pair(text []byte) (first, second *tail) {
	if t.slots == nil {
		t.seed, t.slots = maphash.MakeSeed(), new([1 << tailBits]tail)
	}
	i := maphash.Bytes(t.seed, text) >> (64 - tailBits)
	return &t.slots[i], &t.slots[i^1]
}

// find returns the tail with this text, or nil if the cache does not have it. It is valid until the
// next add.
func (t *tails) find(text []byte) *tail {
	first, second := t.pair(text)
	switch {
	case bytes.Equal(first.text, text):
		return first
	case bytes.Equal(second.text, text):
		return second
	}
	return nil
}

// add adds a tail with a copy of this text, which is not empty, and returns it.
func (t *tails) add(text []byte, parsed tail) *tail {
	if len(text) > maxTail {
		long := parsed
		return &long
	}
	slot, second := t.pair(text)
	if len(slot.text) > 0 && len(second.text) == 0 {
		slot = second
	}
	kept := slot.text[:0]
	*slot = parsed
	if slot.key = 0; !parsed.id.IsZero() {
		t.keys++
		slot.key = t.keys
	}
	slot.text = append(kept, text...)
	return slot
}
