//go:build linux

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// valgrindText runs a twin's program below Valgrind in the folder dir, and returns the report.
func (w *traceTwin) valgrindText(t *testing.T, dir string, args ...string) []byte {
	t.Helper()
	need(t, "valgrind")
	cmd := exec.Command("valgrind", append([]string{"--read-inline-info=yes", "--log-file=" + filepath.Join(w.dir, "log")}, args...)...)
	cmd.Args = append(cmd.Args[:len(cmd.Args)-1], filepath.Join(dir, filepath.Base(w.program)), args[len(args)-1])
	cmd.Env = append(os.Environ(), "LD_LIBRARY_PATH="+dir)
	out, _ := producers.combined(t, cmd) // the exit status is the program's
	log, err := os.ReadFile(filepath.Join(w.dir, "log"))
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return log
}

// valgrindPlaces returns the frames of a report in the twin's sources: the word, the address, the
// name without scopes and parameters, and the line.
func valgrindPlaces(text string) (places []string) {
	frame := regexp.MustCompile(`==    (at|by) (0x[0-9A-F]+): (.*) \((?:\S*/)?(\w+\.(?:cc|h):\d+)\)$`)
	ours := regexp.MustCompile(`^(memory|ledger|pool|inventory)\.`)
	name := regexp.MustCompile(`(\w+)(\(.*)?$`)
	for line := range strings.Lines(text) {
		if m := frame.FindStringSubmatch(strings.TrimSpace(line)); m != nil && ours.MatchString(m[4]) {
			fn := name.FindStringSubmatch(regexp.MustCompile(`\(.*|<.*>`).ReplaceAllString(m[3], ""))
			places = append(places, fmt.Sprintf("%s %s %s %s", m[1], m[2], fn[1], m[4]))
		}
	}
	return places
}

// The answers must equal Valgrind's own output for files with debug information.
func TestValgrindsTextIsResolved(t *testing.T) {
	builds := map[string]twinBuild{
		"gcc":        {},
		"gcc no-pie": {link: []string{"-no-pie"}},
	}
	if long() {
		for _, level := range []string{"-O1", "-O2"} { // with -O0, Valgrind 3.19 confuses line 7 of two files
			for _, link := range []string{"-pie", "-no-pie"} {
				for _, compiler := range []string{"g++", "clang++-19"} { // Valgrind 3.19 misreads files and lines of DWARF 5
					builds[compiler+" "+level+" "+link] = twinBuild{compiler: compiler, flags: []string{level, "-gdwarf-4"}, link: []string{link}}
				}
			}
		}
	}
	for name, b := range builds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "memory", b)
			for _, args := range [][]string{
				{"--leak-check=full", "memory"},
				{"--track-origins=yes", "signal"},
				{"--tool=helgrind", "race"},
			} {
				log := w.valgrindText(t, w.dir, args...)
				want := valgrindPlaces(string(w.valgrindText(t, w.whole, args...)))
				got := valgrindPlaces(w.text(t, log))
				if diff := cmp.Diff(want, got); diff != "" || len(want) < 10 {
					t.Errorf("%s: Valgrind with debug information (-), symfilter (+), %d frames:\n%s", args, len(want), diff)
				}
				w.frames(t, log)
			}
		})
	}
}

// Valgrind loads the program at its usual address, and the library elsewhere. If the files are of
// another build, the report must stay unchanged.
func TestValgrindsTextIsNotResolvedByOtherBuilds(t *testing.T) {
	t.Parallel()
	w := newTraceTwin(t, "memory", twinBuild{})
	log := w.valgrindText(t, w.dir, "--leak-check=full", "memory")
	for _, flags := range []string{"-O0", "-O1", "-Os", "-fcf-protection=full"} {
		other := newTraceTwin(t, "memory", twinBuild{flags: []string{flags}})
		for _, file := range []string{"memory", "libledger.so"} {
			run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
		}
		if out := w.text(t, log, "--debug-file-directory", other.debug); out != string(log) {
			t.Errorf("%s: another build changes the report (-):\n%s", flags, cmp.Diff(string(log), out))
		}
	}
}

// A file that was located for one error must resolve all errors of the same process, whatever lines
// are between them. It must resolve no error of another process.
func TestValgrindsTextIsOfOneProcess(t *testing.T) {
	t.Parallel()
	w := newTraceTwin(t, "memory", twinBuild{})
	log := string(w.valgrindText(t, w.dir, "memory"))
	frame := regexp.MustCompile(`(?m)^==(\d+)==    by 0x[0-9A-F]+: \?\?\? \(in .*libledger\.so\)\n`).FindStringSubmatch(log)
	if frame == nil {
		t.Fatalf("no frame of the library in\n%s", log)
	}
	other := strings.ReplaceAll(frame[0], frame[1], "1"+frame[1])
	log += strings.Repeat("a line of the program\n", 2000) + frame[0] + other
	out := w.text(t, []byte(log))
	_, out, _ = strings.Cut(out, "a line of the program\n==")
	want := regexp.MustCompile(`\A\d+==    by 0x\w+: .*visit\(int\) \(pool\.h:7\)\n==\d+==    by 0x\w+: ledger::settle\(.*\) \(ledger\.cc:8\)\n` + regexp.QuoteMeta(other) + `\z`)
	if !want.MatchString(out) {
		t.Errorf("the last frames are\n%s", out)
	}
}

// A large program prints its maps below Valgrind. Without debug information, the biases of tens of
// thousands of frames must agree with these maps.
func TestValgrindsTextHasThePlacesOfTheMaps(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "valgrind", "gdb")
	log := filepath.Join(t.TempDir(), "log")
	printed := run(t, nil, "valgrind", "--leak-check=full", "--show-leak-kinds=all", "--log-file="+log,
		"/usr/bin/gdb", "-nx", "-batch", "-ex", `python print(open("/proc/self/maps").read())`, "/bin/true")
	bases := make(map[string]uint64)
	for _, m := range regexp.MustCompile(`(?m)^([0-9a-f]+)-\S+ r\S+ 00000000 \S+ \d+ +(/\S+)$`).FindAllStringSubmatch(printed, -1) {
		if bases[m[2]] == 0 {
			bases[m[2]] = number(t, m[1])
		}
	}
	right, raw := 0, 0
	for line := range strings.Lines(run(t, nil, command, "--output=json", "--no-default-debug-directories", log)) {
		var object struct {
			Elements []struct{ Address, Module, Offset, Verified string }
		}
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, f := range object.Elements {
			base := bases[f.Module]
			switch {
			case f.Verified == "" || base == 0:
				raw++
				continue
			case base == 0x400000:
				base = 0 // the program is not position-independent
			}
			addr, offset := number(t, strings.TrimPrefix(f.Address, "0x")), number(t, strings.TrimPrefix(f.Offset, "0x"))
			if d := addr - base - offset; d+1 > 1 { // after a signal, the address is one more than the logged one
				t.Errorf("%s is at %#x in %s, which is loaded at %#x", f.Offset, addr, f.Module, base)
			}
			right++
		}
	}
	t.Logf("%d frames are in their places, %d stay", right, raw)
	if right < 9*raw {
		t.Errorf("%d frames of %d stay", raw, right+raw)
	}
}
