package filter

import "golang.org/x/sys/cpu"

// findOpenAVX2 returns the offset of the first "{{{" in b and the number of line ends before it. It
// stops at an offset less than 34 bytes before the end of b, and returns that offset and the number
// of line ends before it. It needs AVX2 and POPCNT.
//
//go:noescape
func findOpenAVX2(b []byte) (at, lines int)

// FindOpen returns the offset of the first "{{{" in b, or len(b) if there is none, and the number
// of line ends before that offset.
//
// It reads every byte of every log, and apart from copying takes most of the time of a log without
// markup. bytes.Index and bytes.Count take four times as long on logs with single braces, such as
// JSON.
func FindOpen(b []byte) (at, lines int) {
	if len(b) > 2 && b[0] == '{' && b[1] == '{' && b[2] == '{' {
		return 0, 0 // a line of a backtrace that follows another
	}
	if cpu.X86.HasAVX2 && cpu.X86.HasPOPCNT {
		if at, lines = findOpenAVX2(b); at+2 < len(b) && b[at] == '{' && b[at+1] == '{' && b[at+2] == '{' {
			return at, lines
		}
	}
	restAt, restLines := findOpenGo(b[at:])
	return at + restAt, lines + restLines
}
