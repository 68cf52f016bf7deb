package fuzztest

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math/bits"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A recorder records the errors of a test.
type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper()               {}
func (r *recorder) Errorf(string, ...any) { r.failed = true }

// Growth must report quadratic work, but not linear work. The clock counts simulated work, so the
// result does not depend on the machine.
func TestGrowthTellsQuadraticFromLinear(t *testing.T) {
	runs := 0
	for _, test := range []struct {
		name string
		cost func(n, run int) time.Duration // cost of an input of n KiB
		want bool
	}{
		{"nothing", func(n, _ int) time.Duration { return 0 }, false},
		{"linear", func(n, _ int) time.Duration { return slowdown * time.Duration(n) * time.Millisecond }, false},
		{"much and linear", func(n, _ int) time.Duration { return slowdown * time.Duration(n) * time.Second }, false},
		{"n log n", func(n, _ int) time.Duration {
			return slowdown * time.Duration(n*bits.Len(uint(n))) * time.Millisecond
		}, false},
		{"quadratic", func(n, _ int) time.Duration { return slowdown * time.Duration(n*n) * 10 * time.Microsecond }, true},
		{"quadratic, and little", func(n, _ int) time.Duration { return slowdown * time.Duration(n*n) * time.Microsecond }, false},
		{"quadratic beside a linear part", func(n, _ int) time.Duration {
			return slowdown * time.Duration(n*n+n) * 20 * time.Microsecond
		}, true},
		{"linear, disturbed twice", func(n, run int) time.Duration {
			if run < 3 && n > 16 {
				n *= n
			}
			return slowdown * time.Duration(n) * time.Millisecond
		}, false},
	} {
		var now time.Duration
		runs = 0
		m := meter{clock: func() time.Duration { return now }, run: func(b []byte) { now += test.cost(len(b)>>10, runs); runs++ }}
		r := &recorder{TB: t}
		m.check(r, bytes.Repeat([]byte("x"), 1<<10))
		if r.failed != test.want {
			t.Errorf("%s: reported %v, want %v", test.name, r.failed, test.want)
		}
	}
}

func TestGrowthRepeatsLinesAndOneLine(t *testing.T) {
	var lines, lengths []int
	Growth(t, []byte("ab\ncd"), func(b []byte) {
		lines, lengths = append(lines, bytes.Count(b, []byte{'\n'})), append(lengths, len(b))
	})
	if len(lines) != 2 || lines[0] != midSize/5 || lines[1] != 0 || lengths[1] != midSize {
		t.Errorf("runs with %d lines and %d bytes", lines, lengths)
	}
	Growth(t, make([]byte, longest+1), func([]byte) { t.Error("an input that is too long was repeated") })
}

func TestFlowTellsStreamsThatStandStill(t *testing.T) {
	for _, test := range []struct {
		name   string
		stream func(out io.Writer) io.Writer
		within int
		want   bool
	}{
		{"passes all", func(out io.Writer) io.Writer { return out }, 0, false},
		{"keeps all", func(io.Writer) io.Writer { return io.Discard }, 0, true},
		{"keeps all", func(io.Writer) io.Writer { return io.Discard }, 1 << 20, true},
		{"keeps 4 KiB, promises none", func(out io.Writer) io.Writer { return bufio.NewWriterSize(out, 4<<10) }, 0, true},
		{"keeps 4 KiB, promises 8", func(out io.Writer) io.Writer { return bufio.NewWriterSize(out, 4<<10) }, 8 << 10, false},
		{"fails", func(io.Writer) io.Writer { return failing{} }, 0, false},
	} {
		var out bytes.Buffer
		r := &recorder{TB: t}
		Flow(r, []byte("a"), test.stream(&out), out.Len, "probe\n", test.within)
		if r.failed != test.want {
			t.Errorf("%s: reported %v, want %v", test.name, r.failed, test.want)
		}
	}
}

type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, errors.New("closed") }

// Each child process has an input that loops, blocks, or ends. Watch ends the process that loops,
// the test kills the process that blocks, and the process that ends leaves no record.
func TestUnfinishedInputsAreRecorded(t *testing.T) {
	if how := os.Getenv("FUZZTEST_HANG"); how != "" {
		done := Watch(t, how)
		switch how {
		case "work":
			for work := 0; ; work++ {
				if work < 0 { // prevents the removal of the loop
					work = 0
				}
			}
		case "wait":
			select {}
		case "end":
			for list, _ := os.ReadDir(os.Getenv(Unfinished)); len(list) == 0; list, _ = os.ReadDir(os.Getenv(Unfinished)) {
				time.Sleep(10 * time.Millisecond)
			}
			done()
		}
		return
	}
	tests := map[string]string{
		"wait": "an input was not finished: \"wait\"\n",
		"end":  "",
	}
	if slowdown == 1 { // otherwise it takes 20 s of processor time
		tests["work"] = "an input takes more than " + work.String() + " of work: \"work\"\n"
	}
	for how, want := range tests {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestUnfinishedInputsAreRecorded$")
			cmd.Env = append(os.Environ(), "FUZZTEST_HANG="+how, Unfinished+"="+dir)
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			if how == "wait" {
				for records(t, dir) == "" {
					time.Sleep(10 * time.Millisecond)
				}
				cmd.Process.Kill()
			}
			if err := cmd.Wait(); (err == nil) != (how == "end") {
				t.Errorf("the process ended with %v", err)
			}
			if got := records(t, dir); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// records returns the contents of the files in dir.
func records(t *testing.T, dir string) string {
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := ""
	for _, e := range list {
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all += string(b)
	}
	return all
}
