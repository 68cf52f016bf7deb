package report

// Hex parses a hexadecimal number without the prefix 0x. It fails if digits is empty, has more than
// 16 bytes, or has a byte that is not a digit.
func Hex(digits []byte) (n uint64, ok bool) {
	if len(digits) == 0 || len(digits) > 16 {
		return 0, false
	}
	for _, c := range digits {
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return 0, false
		}
		n = n<<4 | uint64(c)
	}
	return n, true
}
