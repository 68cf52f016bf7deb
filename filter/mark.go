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
