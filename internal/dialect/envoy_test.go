package dialect

import (
	"encoding/json"
	"testing"
)

// Envoy prints the path of a file once, before its frames. Frames after a restart of the Reader
// must still have this path.
func TestTheFileOfEnvoyOutlivesARestart(t *testing.T) {
	const library = "/lib/x86_64-linux-gnu/libc.so.6"
	r := NewReader(nil)
	r.Line([]byte("[critical][backtrace] thr<6> #0 0x4b47a5"), 1)
	r.Line([]byte("[critical][backtrace] thr<6> obj<"+library+">"), 2)
	saved, err := json.Marshal(r.State())
	if err != nil {
		t.Fatal(err)
	}
	var state State
	if err := json.Unmarshal(saved, &state); err != nil {
		t.Fatal(err)
	}
	restarted := NewReader(nil)
	restarted.SetState(state)
	l := restarted.Line([]byte("[critical][backtrace] thr<6> #1 0x7f31c2a01153"), 3)
	if l == nil || len(l.Frames) != 1 || l.Frames[0].Module != library {
		t.Errorf("got %+v, want a frame in %s", l, library)
	}
}
