package filter

import "bytes"

const esc = 0x1b

var (
	markupOpen = []byte("{{{")
	newline    = []byte{'\n'}
)

// findOpenGo is FindOpen for any processor.
func findOpenGo(b []byte) (at, lines int) {
	at = bytes.Index(b, markupOpen)
	if at < 0 {
		at = len(b)
	}
	return at, bytes.Count(b[:at], newline)
}

// findMark is FindOpen for the marks of raw backtraces, too.
func findMark(b []byte) (at, lines int) {
	at, _ = FindOpen(b)
	for _, a := range []string{"0x", " pc", " ip", `"o"`, "@ 0", "wn]", "C=0"} {
		if i := bytes.Index(b[:at], []byte(a)); i >= 0 {
			at = i
		}
	}
	return at, bytes.Count(b[:at], newline)
}
