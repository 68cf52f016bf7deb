package report

// Hex returns the number that digits are, in hex without 0x. It fails without digits, and if there
// are more than 16.
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
