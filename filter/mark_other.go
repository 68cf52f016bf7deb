//go:build !amd64

package filter

import "github.com/symfilter/symfilter/dialect"

// FindOpen returns the offset of the first "{{{" in b, or len(b) if there is none, and the number
// of line ends before that offset.
func FindOpen(b []byte) (at, lines int) { return findOpenGo(b) }

// searchMark is searchMarkGo for marks.
func searchMark(b []byte, from int, r *dialect.Reader) (at, lines int) {
	return searchMarkGo(b, from, markBytes, r)
}

// searchEscaped is searchMarkGo for escapedMarks.
func searchEscaped(b []byte) (at, lines int) { return searchMarkGo(b, 0, escapedBytes, nil) }
