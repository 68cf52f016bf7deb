package filter

import "github.com/symfilter/symfilter/dialect"

// findMark returns the offset of the first mark in b from from on, or len(b) if there is none, and
// the number of line ends between. At from, which must be the beginning of a line, "0x" is a mark
// too. The offset of "\n0x" is that of its '0', since the mark belongs to the line after '\n'.
// Marks at which r rejects all dialects are left out, unless r is nil.
//
// Like FindOpen it reads every byte of every log.
func findMark(b []byte, from int, r *dialect.Reader) (at, lines int) {
	if from+1 < len(b) && b[from] == '0' && b[from+1] == 'x' && (r == nil || r.MayMatch(b, from)) {
		return from, 0
	}
	if at, lines = searchMark(b, from, r); at < len(b) && b[at] == '\n' {
		return at + 1, lines + 1
	}
	return at, lines
}

// FindMark returns the offset of the first mark in b, or len(b) if there is none, and the number of
// line ends before that offset. b begins at the beginning of a line. A Filter with dialects
// does not need a line without a mark, unless [Filter.Wants] returns true, or colours are followed.
func FindMark(b []byte) (at, lines int) { return findMark(b, 0, nil) }

// FindEscapedMark is FindMark for lines whose text is in strings of JSON.
func FindEscapedMark(b []byte) (at, lines int) { return searchEscaped(b) }
