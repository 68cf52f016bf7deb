package dialect

// A byteSet is a set of byte values. A line that lacks a byte of a header need not be searched for
// that header. Short lines lack a byte of most headers.
type byteSet [4]uint64

func bytesOf(b []byte) (set byteSet) {
	for _, c := range b {
		set[c>>6] |= 1 << (c & 63)
	}
	return set
}

// within reports whether all bytes of s are in t.
func (s *byteSet) within(t *byteSet) bool {
	return s[0]&^t[0]|s[1]&^t[1]|s[2]&^t[2]|s[3]&^t[3] == 0
}
