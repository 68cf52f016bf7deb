package main

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// A million diagnostics come within 20 seconds. The first ten of each second must be printed, and
// then the number of the suppressed ones.
func TestDiagnosticsAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		d := &diagnostics{w: &out}
		const seconds, each = 20, 50_000 // a million in all
		for range seconds {
			for range each {
				d.printf("log:%d:%d: malformed", 1, 2)
				time.Sleep(time.Second / each)
			}
		}
		d.flush()
		want := strings.Repeat(strings.Repeat("symfilter: log:1:2: malformed\n", diagnosticsASecond)+"symfilter: 49990 more suppressed\n", seconds)
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("%d bytes of diagnostics (-want +got):\n%.2000s", out.Len(), diff)
		}
	})
}

func TestDiagnosticsOfLinesDoNotSuppressThoseOfInputs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out strings.Builder
		d := &diagnostics{w: &out}
		for range 3 * diagnosticsASecond {
			d.printf("log:1:2: malformed")
		}
		for range 2 * diagnosticsASecond {
			d.sum("log: not a profile")
		}
		d.flush()
		want := strings.Repeat("symfilter: log:1:2: malformed\n", diagnosticsASecond) + strings.Repeat("symfilter: log: not a profile\n", diagnosticsASecond) + "symfilter: 30 more suppressed\n"
		if diff := cmp.Diff(want, out.String()); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}
