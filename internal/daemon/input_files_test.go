package daemon

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/follow"
)

func TestLossesAreWarnings(t *testing.T) {
	for _, test := range []struct {
		event follow.Event
		want  string
	}{
		{follow.Event{Name: "a", Message: "m", Loss: true, Lost: 7}, "level=WARN msg=m file=a lost=7\n"},
		{follow.Event{Name: "a", Message: "m", Loss: true}, "level=WARN msg=m file=a\n"},
		{follow.Event{Name: "a", Message: "m"}, "level=INFO msg=m file=a\n"},
		{follow.Event{Name: "a", Message: "m", Routine: true}, "level=DEBUG msg=m file=a\n"},
	} {
		var out bytes.Buffer
		p := &pipeline{log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))}
		(&files{p: p}).notify(test.event)
		if _, got, _ := strings.Cut(out.String(), " "); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.event, got, test.want)
		}
	}
}
