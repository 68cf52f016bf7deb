package daemon

import (
	"strings"
	"testing"
	"time"
)

// A filter without progress must count as stuck, since a restart helps. A filter that waits for
// debug files or for its output must not.
func TestAStuckFilterIsNotReportedAlive(t *testing.T) {
	dir := t.TempDir()
	d, _ := started(t, configuration(t, dir, strings.Replace(idle, "output:", "patience: {local: 1m, servers: 2m}, output:", 1)), Options{Stdin: blocked(t)})
	p := d.view.Load().pipelines[0]
	s := p.session("a", nil)
	defer s.Close()
	at := func(d time.Duration) int64 { return p.house.clock() - int64(d) }
	for _, tt := range []struct {
		name    string
		since   int64
		writing bool
		want    string
	}{
		{"it waits for lines", 0, false, ""},
		{"it works", at(time.Second), false, ""},
		{"it works for the patience of a line", at(11 * time.Minute), false, ""},
		{"it works for too long", at(13 * time.Minute), false, "app"},
		{"it waits for its output", at(time.Hour), true, ""},
	} {
		s.turn.since.Store(tt.since)
		s.turn.writing.Store(tt.writing)
		if got := d.stuck(10 * time.Minute); got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	s.turn.writing.Store(false)
	s.turn.since.Store(at(time.Hour))
	if got := adminAnswer(t, d, "GET", "/healthz"); got.Code != 503 || got.Body.String() != `{"healthy":false,"stuck":"app"}`+"\n" {
		t.Errorf("got %d %q", got.Code, got.Body)
	}
	s.asked(time.Second) // a wait for a debug file has ended
	if got := d.stuck(10 * time.Minute); got != "" {
		t.Errorf("after progress, %q is stuck", got)
	}
}
