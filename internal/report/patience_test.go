package report

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A log may wait for thousands of files in a minute, each for a moment. The memory for these waits
// must not grow with their number. No wait may be lost, or kept for much more than a minute.
func TestShortWaitsTakeNoSpace(t *testing.T) {
	const waits, each = 100_000, time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		p := &Patience{Local: 2 * time.Second, Servers: 2 * time.Second, PerMinute: time.Hour}
		ask := func(context.Context) error { time.Sleep(each); return nil }
		for range waits {
			p.Await(p.Name(buildid.ID{}, time.Now()), symbolize.Location{}, ask)
		}
		if n := len(p.pauses); n > 64 {
			t.Errorf("%d pauses are kept, want at most 64", n)
		}
		if got := p.spent(time.Now()); got < time.Minute || got > 62*time.Second {
			t.Errorf("the waits of the last minute took %v, want a minute", got)
		}
		time.Sleep(time.Minute + time.Millisecond)
		if got := p.spent(time.Now()); got != 0 {
			t.Errorf("a minute later, waits of %v are kept", got)
		}
	})
}
