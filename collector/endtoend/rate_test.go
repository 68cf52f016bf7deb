//go:build linux

package endtoend

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/testenv"
)

// rateRecords is the number of records of a run: some seconds of work.
const rateRecords = 600_000

// Records pass through filelog, symfilter, OTLP, a second Collector and a file. Their rate must be
// at least 0.9 of the rate without symfilter, or 0.6 if most records have frames. RATE=N makes N
// runs without symfilter and N runs with it, alternating. The test compares medians. Without RATE
// the test is skipped, since the figures of a busy machine mean nothing.
func TestRates(t *testing.T) {
	runs, err := strconv.Atoi(os.Getenv("RATE"))
	if err != nil {
		t.Skip("RATE is not a number of runs: a measurement, for a machine that does nothing else")
	}
	lines := linesOf(t, "testdata/crash.log")
	head, frames, plain := lines[4:32], lines[33:38], strings.Repeat("an ordinary line of a log, with numbers 12 345 and words ", 2)
	for _, test := range []struct {
		name    string
		percent int // of records with a frame
		least   float64
	}{
		{"plain", 0, 0.9},
		{"2 % frames", 2, 0.9},
		{"87 % frames", 87, 0.6},
	} {
		log := []byte("process 1\n" + strings.Join(head, "\n") + "\n")
		for i := range rateRecords {
			if (i*37)%100 < test.percent {
				log = append(append(log, frames[i%len(frames)]...), '\n')
			} else {
				log = append(fmt.Appendf(log, "%s%d", plain, i), '\n')
			}
		}
		var took, used [2][]float64
		for range runs {
			for with := range 2 {
				wall, cpu := timedRun(t, log, with == 1)
				took[with], used[with] = append(took[with], wall.Seconds()), append(used[with], cpu.Seconds())
			}
		}
		ratio, cpu := median(took[0])/median(took[1]), median(used[1])/median(used[0])
		t.Logf("%s: rate %.2f of that without symfilter, %.0f records/s; processor time of the first Collector %.2f times; seconds without %.2f, with %.2f",
			test.name, ratio, rateRecords/median(took[1]), cpu, took[0], took[1])
		if ratio < test.least {
			t.Errorf("%s: rate %.2f of that without symfilter, want %.2f", test.name, ratio, test.least)
		}
	}
}

func median(all []float64) float64 {
	all = slices.Sorted(slices.Values(all))
	return all[len(all)/2]
}

// timedRun returns the time that a log takes through two Collectors, and the processor time of the
// first Collector.
func timedRun(t *testing.T, log []byte, with bool) (wall, cpu time.Duration) {
	t.Helper()
	dir := t.TempDir()
	const last = "the last line of the log"
	file := filepath.Join(dir, "logs", "a.tmp")
	appendTo(t, file, string(log)+last)
	address, out := testenv.FreeAddress(t), filepath.Join(dir, "out.json")
	config := agent(filepath.Join(dir, "logs", "*.log"), "", "", "", toOTLP(address))
	if !with {
		config = strings.Replace(config, "      processors:\n        - symfilter\n", "", 1)
	}
	second := startCollector(t, backend(address, out))
	first := startCollector(t, config)
	began := time.Now()
	if err := os.Rename(file, filepath.Join(dir, "logs", "a.log")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the last record has come", func() bool { return bytes.Contains(tailOf(t, out), []byte(last)) }, first.log)
	wall = time.Since(began)
	first.kill()
	second.kill()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	return wall, first.cmd.ProcessState.UserTime() + first.cmd.ProcessState.SystemTime()
}

// tailOf returns the last KiB of a file, or nil if the file does not exist yet.
func tailOf(t *testing.T, name string) []byte {
	t.Helper()
	f, err := os.Open(name)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 1<<10)
	n, _ := f.ReadAt(b, max(0, info.Size()-int64(len(b)))) // reads less if the file is shorter
	return b[:n]
}
