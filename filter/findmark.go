package filter

// findMark returns the offset of the first mark in b, or len(b) if there is none, and the number of
// line ends before that offset. At the beginning of b, which must be the beginning of a line, "0x" is
// a mark too. The offset of "\n0x" is that of its '0', since the mark belongs to the line after '\n'.
//
// Like FindOpen it reads every byte of every log.
func findMark(b []byte) (at, lines int) {
	if len(b) > 1 && b[0] == '0' && b[1] == 'x' {
		return 0, 0
	}
	if at, lines = searchMark(b); at < len(b) && b[at] == '\n' {
		return at + 1, lines + 1
	}
	return at, lines
}

// FindMark returns the offset of the first mark in b, or len(b) if there is none, and the number of
// line ends before that offset. b begins at the beginning of a line. A line without a mark means
// nothing to a Filter with dialects, unless [Filter.Wants] asks for every line, or colours are
// followed.
func FindMark(b []byte) (at, lines int) { return findMark(b) }

// FindEscapedMark is FindMark for lines whose text is in strings of JSON.
func FindEscapedMark(b []byte) (at, lines int) { return searchEscaped(b) }
