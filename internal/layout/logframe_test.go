package layout

import "testing"

func TestWhatEndsAFrame(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, " ": true, " (/lib/libc.so.6+0x2b) (BuildId: aabb)": true, "[0x7f00]": true, "(main+0x1) [0x12]": true,
		" died": false, " (a": false, ")": false, "(a) b": false,
	} {
		if got := EndsFrame([]byte(text)); got != want {
			t.Errorf("%q: got %v", text, got)
		}
	}
}
