package testenv

import (
	"fmt"
	"path/filepath"
	"runtime"
	"testing"
)

// outcome records how a test ends.
type outcome struct {
	testing.TB
	text string
}

func (o *outcome) Helper() {}
func (o *outcome) Fatalf(format string, args ...any) {
	o.end("failed: " + fmt.Sprintf(format, args...))
}
func (o *outcome) Skipf(format string, args ...any) {
	o.end("skipped: " + fmt.Sprintf(format, args...))
}
func (o *outcome) Skip(args ...any) { o.end("skipped: " + fmt.Sprint(args...)) }

func (o *outcome) end(text string) {
	o.text = text
	runtime.Goexit()
}

// endOf runs body as a test. It returns "passed", or "failed: " or "skipped: " with the message.
func endOf(t *testing.T, body func(testing.TB)) string {
	o := &outcome{TB: t, text: "passed"}
	done := make(chan struct{})
	go func() {
		defer close(done)
		body(o)
	}()
	<-done
	return o.text
}

func TestAMissingPartFailsInCI(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "absent")
	platform := runtime.GOOS + "/" + runtime.GOARCH
	for _, c := range []struct {
		name     string
		body     func(testing.TB)
		here, ci string
	}{
		{"present", func(t testing.TB) {
			Need(t, filepath.Dir(absent))
			OnlyOn(t, "plan9", platform)
			OnlyOn(t, runtime.GOOS)
		}, "passed", "passed"},
		{"two files", func(t testing.TB) { Need(t, absent, filepath.Dir(absent), absent+"2") },
			"skipped: missing: " + absent + ", " + absent + "2 (make install-deps)", "failed: missing: " + absent + ", " + absent + "2 (make install-deps)"},
		{"a program", func(t testing.TB) { Need(t, "absent-program") },
			"skipped: missing: absent-program (make install-deps)", "failed: missing: absent-program (make install-deps)"},
		{"a pattern", func(t testing.TB) { Find(t, absent+"*") },
			"skipped: missing: " + absent + "* (make install-deps)", "failed: missing: " + absent + "* (make install-deps)"},
		{"the short run", func(t testing.TB) { OnlyLong(t) }, "skipped: TEST_LONG=1 runs this test", "skipped: TEST_LONG=1 runs this test"},
		{"another platform", func(t testing.TB) { OnlyOn(t, "plan9/386") },
			"skipped: " + platform + ": this test runs on plan9/386", "skipped: " + platform + ": this test runs on plan9/386"},
		{"a right", func(t testing.TB) { Forbidden(t, "ptrace", "no\n") }, "skipped: not permitted here: ptrace: no", "skipped: not permitted here: ptrace: no"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("TEST_LONG", "")
			t.Setenv("CI", "")
			here := endOf(t, c.body)
			t.Setenv("CI", "true")
			if ci := endOf(t, c.body); here != c.here || ci != c.ci {
				t.Errorf("got %q, with CI=true %q; want %q, %q", here, ci, c.here, c.ci)
			}
		})
	}
}

func TestFindReturnsTheFirstFile(t *testing.T) {
	if got := Find(t, "test*_test.go"); got != "testenv_test.go" {
		t.Errorf("got %q", got)
	}
}

// A test of the daemon once got one address for two inputs.
func TestFreeAddressesDiffer(t *testing.T) {
	seen := make(map[string]bool)
	for range 500 { // of 12,000 ports: chosen at random alone, two would be the same
		address := FreeAddress(t)
		if seen[address] {
			t.Fatalf("%s is returned twice", address)
		}
		seen[address] = true
	}
}
