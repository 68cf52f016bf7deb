//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// traced returns the output of strace. It skips the test if the kernel forbids tracing.
func traced(t *testing.T, args ...string) []byte {
	t.Helper()
	need(t, "strace")
	// the exit status is the program's
	out, _ := producers.combined(t, exec.Command("strace", args...))
	if bytes.Contains(out, []byte("Operation not permitted")) {
		testenv.Forbidden(t, "to trace a process", string(out))
	}
	return out
}

// The frames of strace -k must be resolved. It prints file offsets after the line of a system call
// or a signal.
func TestStacksOfStraceAreResolved(t *testing.T) {
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "fault", twinBuild{link: link})
			out := traced(t, "-k", "-e", "trace=none", w.program)
			w.wantChain(t, w.frames(t, out), diedCalls...)
			w.wantOnce(t, out)
			w.wantNothing(t, out)
		})
	}
}

// All frames must be resolved, although the first frame of a system call follows the syscall
// instruction, and a signal handler returns to a trampoline: no call precedes these addresses.
func TestStacksOfStraceBelowAHandler(t *testing.T) {
	w := newTraceTwin(t, "backtrace", twinBuild{})
	out := traced(t, "-k", "-s", "0", "-e", "signal=none", "-e", "trace=exit_group", w.program, "signal")
	_, stack, ok := bytes.Cut(out, []byte("exit_group(1)"))
	if !ok {
		t.Fatalf("no stack of the last system call:\n%s", out)
	}
	frames := w.frames(t, stack)
	w.wantChain(t, frames, "exit", "fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main")
	if len(frames) == 0 || len(frames[0].Frames) == 0 || !strings.Contains(frames[0].Frames[0].Function, "xit") {
		t.Errorf("the frame of the system call: %+v", frames[:min(1, len(frames))])
	}
}

// The frames of perf script must be resolved: perf 5.6 to 6.3 prints file offsets, other versions
// addresses of the process. The address of a page fault is exact. The twin's last sample is its
// fault.
func TestSamplesOfPerfAreResolved(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "perf")
	calls := append([]string{"inventory.h/fall"}, diedCalls[2:]...) // perf follows frame pointers, which fall lacks
	for name, link := range links() {
		t.Run(name, func(t *testing.T) {
			w := newTraceTwin(t, "fault", twinBuild{link: link})
			data := filepath.Join(w.dir, "data")
			// The exit status is the program's.
			out, _ := producers.combined(t, exec.Command("perf", "record", "--buildid-mmap", "-q", "-e", "page-faults:u", "-c", "1", "-g", "-o", data, w.program))
			if bytes.Contains(out, []byte("perf_event_paranoid")) {
				testenv.Forbidden(t, "to record with perf", string(out))
			}
			log := run(t, nil, "perf", "script", "-i", data)
			header := regexp.MustCompile(`(?m)^fault .*page-faults:u:.*\n`).FindAllStringIndex(log, -1)
			if header == nil {
				t.Fatalf("no samples: %s", log)
			}
			last := header[len(header)-1]
			sample := []byte(log[last[0]:])
			w.wantChain(t, w.frames(t, sample), calls...)
			w.wantOnce(t, sample)
			w.wantChain(t, w.frames(t, asRuntime(t, w, log[last[1]:], data)), calls...)
			all, rest := w.frames(t, []byte(log)), w.frames(t, []byte(log[:last[0]]))
			w.wantChain(t, all[len(rest):], calls...)
			w.wantNothing(t, sample)

			// The events of the mappings have build IDs.
			log = run(t, nil, "perf", "script", "--show-mmap-events", "-i", data)
			events := strings.Join(regexp.MustCompile(`(?m)^.*PERF_RECORD_MMAP2.*\n`).FindAllString(log, -1), "")
			w.wantChain(t, w.frames(t, append([]byte(events), sample...)), calls...)
		})
	}
}

// asRuntime returns frames of perf script with addresses of the process, as printed by perf 6.4 or
// newer, after the events of the mappings.
func asRuntime(t *testing.T, w *traceTwin, frames, data string) []byte {
	t.Helper()
	log := run(t, nil, "perf", "script", "--show-mmap-events", "-i", data)
	event := regexp.MustCompile(`(?m)^.*PERF_RECORD_MMAP2 .*: \[0x([0-9a-f]+)\((0x[0-9a-f]+)\) @ (0x[0-9a-f]+|0) .*\]: r-xp (/.*)\n`)
	var b bytes.Buffer
	type mapping struct{ start, size, offset uint64 }
	maps := make(map[string]mapping)
	for _, m := range event.FindAllStringSubmatch(log, -1) {
		start, _ := strconv.ParseUint(m[1], 16, 64)
		size, _ := strconv.ParseUint(m[2], 0, 64)
		offset, _ := strconv.ParseUint(m[3], 0, 64)
		maps[m[4]] = mapping{start, size, offset}
		b.WriteString(regexp.MustCompile(`<[0-9a-f]+>`).ReplaceAllString(m[0], "fe:01 1835021 0"))
	}
	b.WriteString("fault  4711 27427.945316:          1 page-faults:u: \n")
	frame := regexp.MustCompile(`^\s+([0-9a-f]+) (.* \((/.*)\))\n`)
	for line := range strings.Lines(frames) {
		f := frame.FindStringSubmatch(line)
		if f == nil {
			continue
		}
		n, _ := strconv.ParseUint(f[1], 16, 64)
		if m, ok := maps[f[3]]; ok && n-m.offset < m.size {
			n += m.start - m.offset
		}
		fmt.Fprintf(&b, "\t%16x %s\n", n, f[2])
	}
	return b.Bytes()
}
