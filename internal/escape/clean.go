package escape

// Clean returns s with control characters escaped, because names in markup, ELF and DWARF may have
// any bytes. It returns a string of printable ASCII characters unchanged.
func Clean(s string) string {
	const (
		ones = 0x0101010101010101
		high = 0x80 * ones
	)
	i := 0
	for ; i+8 <= len(s); i += 8 {
		b := uint64(s[i]) | uint64(s[i+1])<<8 | uint64(s[i+2])<<16 | uint64(s[i+3])<<24 |
			uint64(s[i+4])<<32 | uint64(s[i+5])<<40 | uint64(s[i+6])<<48 | uint64(s[i+7])<<56
		// one of the bytes is not printable ASCII, or follows such a byte
		if (b|(b-' '*ones)|(b+ones))&high != 0 {
			break
		}
	}
	for ; i < len(s); i++ {
		if c := s[i]; c < ' ' || c >= 0x7f {
			return string(AppendText(make([]byte, 0, len(s)+16), s, ""))
		}
	}
	return s
}
