package filter

import "golang.org/x/sys/cpu"

// findOpenAVX2 returns where the first "{{{" begins that it sees, and the
// number of line ends before it; it gives up, with neither, at a place with
// fewer than 34 bytes behind it. It needs AVX2.
//
//go:noescape
func findOpenAVX2(b []byte) (at, lines int)

// FindOpen returns where the first "{{{" begins in b, or len(b), and the
// number of line ends before that place.
//
// It is the one thing done to every byte of every log, and most of what a
// log without markup costs beyond being copied. bytes.Index and bytes.Count
// take four times as long on logs that hold single braces, as JSON does.
func FindOpen(b []byte) (at, lines int) {
	if len(b) > 2 && b[0] == '{' && b[1] == '{' && b[2] == '{' {
		return 0, 0 // a line of a backtrace, behind another
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT {
		if at, lines = findOpenAVX2(b); at+2 < len(b) && b[at] == '{' && b[at+1] == '{' && b[at+2] == '{' {
			return at, lines
		}
	}
	restAt, restLines := findOpenGo(b[at:])
	return at + restAt, lines + restLines
}
