package filter

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/logtest"
)

// restartedAfterEachLine restarts the filter once after each line of log: a new Filter restores the
// context and filters the rest. It fails the test unless each output equals want.
func restartedAfterEachLine(t *testing.T, o Options, log, want string) {
	t.Helper()
	var out bytes.Buffer
	f := New(&out, o)
	at := 0
	for line := range strings.Lines(log) {
		io.WriteString(f, line)
		at += len(line)
		context := f.AppendContext(nil)
		var other bytes.Buffer
		other.Write(out.Bytes())
		g := New(&other, o)
		if err := g.Restore(context); err != nil {
			t.Fatalf("after %q: %v in\n%s", line, err, context)
		}
		if diff := cmp.Diff(string(context), string(g.AppendContext(nil))); diff != "" {
			t.Errorf("after %q: the context (-), that of what was restored (+):\n%s", line, diff)
		}
		io.WriteString(g, log[at:])
		g.Close()
		if diff := cmp.Diff(want, other.String()); diff != "" {
			t.Errorf("after %q: uninterrupted (-), restarted (+):\n%s", line, diff)
		}
	}
	f.Close()
}

// A restart after any line of a backtrace must not change the output.
func TestRestartsWithinBacktracesChangeNothing(t *testing.T) {
	o := resolvingDialects(t)
	o.Dialects.Whole = true   // a slow machine must not end a trace
	o.Dialects.NoPaths = true // files on this machine must not change the output
	for _, log := range logtest.Samples(t, "../internal/dialect/testdata/*.txtar") {
		want, _ := filterString(t, o, log, nil)
		restartedAfterEachLine(t, o, log, want)
	}
}
