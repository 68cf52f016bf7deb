//go:build !amd64

package filter

// FindOpen returns the offset of the first "{{{" in b, or len(b) if there is none, and the number
// of line ends before that offset.
func FindOpen(b []byte) (at, lines int) { return findOpenGo(b) }

// searchMark returns the offset of the first three bytes in b that are a mark, or len(b) if there
// are none, and the number of line ends before that offset.
func searchMark(b []byte) (at, lines int) { return searchMarkGo(b, markBytes) }

// searchEscaped is searchMark for escapedMarks.
func searchEscaped(b []byte) (at, lines int) { return searchMarkGo(b, escapedBytes) }
