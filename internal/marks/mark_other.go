//go:build !amd64

package marks

// FindOpen returns the offset of the first "{{{" in b, or len(b), and the number of line ends
// before it.
func FindOpen(b []byte) (at, lines int) { return findOpenGo(b) }

func listMarks([]byte, *markTables, *markList) (at, lines, n int) { return 0, 0, 0 }

// tablesOf returns no tables: listMarks uses none.
func tablesOf([]Mark) *markTables { return nil }
