//go:build linux

package integration

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"
)

// A report of GCC's AddressSanitizer has no build ID. If one object of the program was changed
// after the report was written, no frame may get a wrong name or line. In the report, the stacks of
// the freed block refute the file. So the file must not name the stack of the access either,
// although most frames of this stack match the file.
func TestReportsOfAReplacedProgramGetNoWrongNames(t *testing.T) {
	need(t, "g++", "objdump")
	s := newShops(t)
	asan := []string{"-O1", "-fsanitize=address", "-fno-omit-frame-pointer"}
	ran := s.build(t, "g++", asan)
	report := string(crash(t, t.TempDir(), []string{"ASAN_OPTIONS=symbolize=0"}, ran.path, "x"))
	own := regexp.MustCompile(`(?m)^    #\d+ 0x\w+  \(.*/shop\+0x.*$`)
	if n := len(own.FindAllString(report, -1)); n < 8 {
		t.Fatalf("%d frames in the program:\n%s", n, report)
	}
	right := run(t, []byte(report), command)
	if len(own.FindAllString(right, -1)) > 0 || !strings.Contains(right, " in shop::fault(int*, int) ") {
		t.Errorf("the file that ran leaves frames raw:\n%s", right)
	}
	unchanged := 0
	for _, changed := range []string{"ledger", "parse", "tasks"} { // linked after main and text, and before roads
		there := s.build(t, "g++", asan, changed)
		run(t, nil, "cp", there.path, ran.path)
		got := run(t, []byte(report), command, "--quiet")
		for _, name := range regexp.MustCompile(` in (?:shop::|main).*`).FindAllString(got, -1) {
			if !strings.Contains(right, name+"\n") {
				t.Errorf("with %s changed, a frame is%s, which none is in the report:\n%s", changed, name, right)
			}
		}
		if len(own.FindAllString(got, -1)) == len(own.FindAllString(report, -1)) {
			unchanged++
		}
	}
	if unchanged == 0 {
		t.Error("each of three other builds names frames")
	}
}

// A container's log has a time for each line. A program that was changed after this time may be
// another build, so it must not resolve short stacks.
func TestTimesOfAContainersLogShowWhichFileIsYounger(t *testing.T) {
	need(t, "g++", "objdump")
	s := newShops(t)
	ran := s.build(t, "g++", []string{"-O1", "-fsanitize=address", "-fno-omit-frame-pointer"})
	report := crash(t, t.TempDir(), []string{"ASAN_OPTIONS=symbolize=0"}, ran.path, "x")
	raw := regexp.MustCompile(`(?m)^.* #\d+ 0x\w+  \(.*/shop\+0x.*$`)
	left := func(at time.Time) int {
		var log []byte
		for line := range bytes.Lines(report) {
			log = append(append(log, at.UTC().Format(time.RFC3339Nano)+" stderr F "...), line...)
		}
		return len(raw.FindAllString(run(t, log, command, "--quiet"), -1))
	}
	if n := left(time.Now()); n > 0 {
		t.Errorf("%d frames stay raw in a log that is younger than the program", n)
	}
	if left(time.Now().Add(-24*time.Hour)) == 0 {
		t.Error("no frame stays raw in a log that is older than the program")
	}
}
