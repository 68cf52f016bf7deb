package dialect

import "testing"

// ClickHouse prints the addresses of a list a second time, with names. Repeated must recognize the
// second lines, so that only they get answers.
func TestNumberedFramesRepeatAListOfClickHouse(t *testing.T) {
	r := NewReader(nil)
	l := r.Line([]byte("<Fatal> BaseDaemon: Stack trace: 0x000000000f5a1b2c 0x00007f31c2a01154"), 1)
	if l == nil || len(l.Frames) != 2 {
		t.Fatalf("the list has not two frames: %v", l)
	}
	for next, want := range map[string]bool{
		"<Fatal> BaseDaemon: 2. ? @ 0x000000000f5a1b2c":                       true,
		"<Fatal> BaseDaemon: \x1b[1m2. ? @ 0x000000000f5a1b2c":                true,
		"<Fatal> BaseDaemon: 2.0. inlined from ./src/pool.h:11: Pool::f()":    true,
		"<Fatal> BaseDaemon: Changed settings: a @ 0x000000000f5a1b2c":        false,
		"<Fatal> BaseDaemon: Integrity check of the executable skipped":       false,
		"<Fatal> BaseDaemon: Stack trace: 0x000000000f5a1b2c":                 false,
		"  0x000000000f5a1b2c: DB::TCPHandler::run() at ./src/TCPHandler.cpp": false,
	} {
		if got := l.Frames[0].Repeated([]byte(next)); got != want {
			t.Errorf("repeated by %q: %t, want %t", next, got, want)
		}
	}
}
