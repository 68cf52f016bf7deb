package callgrind

// A key identifies a place (a code position with costs), a call or a jump. The fields addr and line
// are the position of the place or of the target.
//
// The fields from and to depend on the kind of key. In a place, they are the function and the
// source file. In a call, they are the index of the place and the called function. In a jump, they
// are the index of the place and twice the target's function, plus 1 if the jump is conditional.
type key struct {
	addr uint64
	from uint32
	to   uint32
	line uint32
}

func (k *key) hash() uint64 {
	const a, b = 0x9e3779b97f4a7c15, 0xd6e8feb86659fd93
	h := (k.addr + uint64(k.from)<<40 ^ uint64(k.from)) * a
	h ^= h >> 29
	h = (h + uint64(k.to)<<32 + uint64(k.line)) * b
	return h ^ h>>32
}

// sums is a table from keys to counts. Each key has width counts.
type sums struct {
	width  int
	keys   []key
	counts []int64
	slots  []uint32 // by hash: 1 + the index of a key; 0 if free
	last   int      // the last index from find or insert
}

// keySize is the size of a key with its slot, in bytes, without counts.
const keySize = 24 + 12

func (s *sums) size() int { return len(s.keys) * (keySize + 8*s.width) }

// keyCost returns the bytes that one more key costs the budget.
func (s *sums) keyCost() int64 { return int64(keySize+8*s.width) * placeHalves / 2 }

func (s *sums) countsOf(i int) []int64 { return s.counts[i*s.width : (i+1)*s.width : (i+1)*s.width] }

// find returns the index of a key, or -1. It first tries the index after the last one, since
// the parts of a profile have similar orders.
func (s *sums) find(k key) int {
	if i := s.last + 1; i < len(s.keys) && s.keys[i] == k {
		s.last = i
		return i
	}
	if i := s.last; i < len(s.keys) && s.keys[i] == k {
		return i
	}
	if len(s.slots) == 0 {
		return -1
	}
	mask := uint64(len(s.slots) - 1)
	for h := k.hash() & mask; s.slots[h] != 0; h = (h + 1) & mask {
		if i := int(s.slots[h] - 1); s.keys[i] == k {
			s.last = i
			return i
		}
	}
	return -1
}

// insert adds a new key, and returns its index.
func (s *sums) insert(k key) int {
	if 4*(len(s.keys)+1) > 3*len(s.slots) {
		s.grow()
	}
	i := len(s.keys)
	s.keys = append(s.keys, k)
	for range s.width {
		s.counts = append(s.counts, 0)
	}
	s.place(i)
	s.last = i
	return i
}

func (s *sums) place(i int) {
	mask := uint64(len(s.slots) - 1)
	h := s.keys[i].hash() & mask
	for s.slots[h] != 0 {
		h = (h + 1) & mask
	}
	s.slots[h] = uint32(i + 1)
}

func (s *sums) grow() {
	s.slots = make([]uint32, max(64, 2*len(s.slots)))
	for i := range s.keys {
		s.place(i)
	}
}

// widen increases the number of counts of each key to width. The added counts are 0.
func (s *sums) widen(width int) {
	counts := make([]int64, 0, len(s.keys)*width)
	for i := range s.keys {
		counts = append(counts, s.countsOf(i)...)
		counts = append(counts, make([]int64, width-s.width)...)
	}
	s.width, s.counts = width, counts
}

// clear removes all keys, in time proportional to their number.
func (s *sums) clear() {
	if len(s.keys)*8 > len(s.slots) {
		clear(s.slots)
	} else {
		mask := uint64(len(s.slots) - 1)
		for i := range s.keys {
			for h := s.keys[i].hash() & mask; s.slots[h] != 0; h = (h + 1) & mask {
				s.slots[h] = 0
			}
		}
	}
	s.keys, s.counts, s.last = s.keys[:0], s.counts[:0], 0
}
