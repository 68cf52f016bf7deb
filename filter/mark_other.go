//go:build !amd64

package filter

// FindOpen returns where the first "{{{" begins in b, or len(b), and the
// number of line ends before that place.
func FindOpen(b []byte) (at, lines int) { return findOpenGo(b) }
