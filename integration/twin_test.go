//go:build linux

package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A traceTwin is a program in testdata/twin and its library, built with debug information, and the
// stripped copies of both. The stripped copies run. Debug files are found by build ID.
type traceTwin struct {
	dir     string // has the stripped program and libledger.so
	program string // path of the stripped program
	whole   string // folder of both files with debug information
	debug   string // --debug-file-directory
}

// truths caches the output of llvm-symbolizer-19, by file and address, since tests share twins.
var truths sync.Map

// A twinBuild has the compiler and the flags for a twin.
type twinBuild struct {
	compiler string   // g++ by default
	flags    []string // flags of the compiler for both files, after -g -O2
	link     []string // flags of the program alone: -no-pie, libraries
}

// newTraceTwin builds testdata/twin/NAME.cc in a temporary folder.
func newTraceTwin(t *testing.T, name string, b twinBuild) *traceTwin {
	t.Helper()
	return newTraceTwinIn(t, t.TempDir(), name, b)
}

// newTraceTwinIn is like newTraceTwin, but builds the program in the folder dir.
func newTraceTwinIn(t *testing.T, dir, name string, b twinBuild) *traceTwin {
	t.Helper()
	if b.compiler == "" {
		b.compiler = "g++"
	}
	w := &traceTwin{dir: filepath.Join(dir, "run"), whole: filepath.Join(dir, "whole"), debug: filepath.Join(dir, "debug")}
	w.program = filepath.Join(w.dir, name)
	for _, d := range []string{w.dir, w.whole, w.debug} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	source := filepath.Join(checkout, "integration", "testdata", "twin")
	common := append([]string{"-g", "-O2", "-Wl,--build-id", "-fno-omit-frame-pointer"}, b.flags...)
	library := filepath.Join(w.whole, "libledger.so")
	run(t, nil, b.compiler, append(append([]string{}, common...), "-fPIC", "-shared", filepath.Join(source, "ledger.cc"), "-o", library)...)
	program := filepath.Join(w.whole, name)
	args := append(append([]string{}, common...), filepath.Join(source, name+".cc"), "-o", program, "-L", w.whole, "-lledger", "-Wl,-rpath,"+w.dir)
	run(t, nil, b.compiler, append(args, b.link...)...)
	for _, file := range []string{library, program} {
		run(t, nil, "strip", "-o", filepath.Join(w.dir, filepath.Base(file)), file)
		id := buildIDOf(t, file)
		folder := filepath.Join(w.debug, ".build-id", id[:2])
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(file, filepath.Join(folder, id[2:]+".debug")); err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func buildIDOf(t *testing.T, file string) string {
	t.Helper()
	found := regexp.MustCompile(`Build ID: ([0-9a-f]+)`).FindStringSubmatch(run(t, nil, "readelf", "-n", file))
	if found == nil {
		t.Fatalf("%s has no build ID", file)
	}
	return found[1]
}

// output runs the stripped program and returns both output streams, whatever the exit status.
func (w *traceTwin) output(t *testing.T, env []string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(w.program, args...)
	cmd.Env = append(os.Environ(), env...)
	out, _, _ := producers.do(t, cmd, nil, true)
	if len(out) == 0 {
		t.Fatalf("%s %s prints nothing", w.program, strings.Join(args, " "))
	}
	return out
}

func (w *traceTwin) text(t *testing.T, log []byte, args ...string) string {
	t.Helper()
	return run(t, log, command, append([]string{"--debug-file-directory", w.debug}, args...)...)
}

// wantSame fails the test if filtering the filtered log again changes it.
func (w *traceTwin) wantSame(t *testing.T, log []byte, args ...string) {
	t.Helper()
	once := w.text(t, log, args...)
	if diff := cmp.Diff(once, w.text(t, []byte(once), args...)); diff != "" {
		t.Errorf("filtered once (-), twice (+):\n%s", diff)
	}
}

// A twinFrame is a frame of a raw backtrace in JSON.
type twinFrame struct {
	Tag, Dialect, Verified, Module, Offset, Reason string
	Frames                                         []struct {
		Function, Linkage, File string
		Line                    int
		Inlined                 bool
	}
}

// frames filters log, and returns the frames of its raw backtraces. It fails the test if a resolved
// frame differs from llvm-symbolizer-19's answer for the unstripped file.
func (w *traceTwin) frames(t *testing.T, log []byte, args ...string) (all []twinFrame) {
	t.Helper()
	need(t, "llvm-symbolizer-19")
	wantInRecords(t, log, append([]string{"--debug-file-directory", w.debug}, args...)...)
	all = framesIn(t, w.text(t, log, append([]string{"--output=json"}, args...)...))
	for _, f := range all {
		whole := filepath.Join(w.whole, filepath.Base(f.Module))
		if _, err := os.Stat(whole); err != nil || len(f.Frames) == 0 {
			continue
		}
		key := whole + "+" + f.Offset
		known, ok := truths.Load(key)
		if !ok {
			known = run(t, nil, "llvm-symbolizer-19", "--obj="+whole, "--functions", "--inlines", f.Offset)
			truths.Store(key, known)
		}
		want := known.(string)
		var got strings.Builder
		for _, s := range f.Frames {
			if s.File == "" {
				s.File = "??" // llvm-symbolizer prints ?? for an unknown file
			}
			fmt.Fprintf(&got, "%s\n%s:%d\n", s.Function, s.File, s.Line)
		}
		want = regexp.MustCompile(`(?m):\d+$`).ReplaceAllString(strings.TrimSpace(want), "")
		if diff := cmp.Diff(want, strings.TrimSpace(got.String())); diff != "" {
			t.Errorf("%s+%s: llvm-symbolizer-19 (-), symfilter (+):\n%s", f.Module, f.Offset, diff)
		}
	}
	return all
}

func framesIn(t *testing.T, objects string) (all []twinFrame) {
	t.Helper()
	for line := range strings.Lines(objects) {
		var object struct{ Elements []twinFrame }
		if err := json.Unmarshal([]byte(line), &object); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		for _, f := range object.Elements {
			if f.Tag == "frame" {
				all = append(all, f)
			}
		}
	}
	return all
}

// chain returns the places (file:line) of the marks "line: NAME" in the twin's sources. Tests
// compare them with the calls in a trace. A mark in the program's own source has precedence over
// the same mark in other files; the name FILE/NAME selects the mark in one file.
func (w *traceTwin) chain(t *testing.T, names ...string) (places []string) {
	t.Helper()
	var sources []string
	for _, pattern := range []string{"*.cc", "*.go", "*.h"} { // a mark in a header has precedence over marks of other programs
		some, err := filepath.Glob(filepath.Join("testdata", "twin", pattern))
		if err != nil {
			t.Fatal(err)
		}
		sources = append(sources, some...)
	}
	marks := make(map[string]string)
	for _, source := range sources {
		text, err := os.ReadFile(source)
		if err != nil {
			t.Fatal(err)
		}
		base := filepath.Base(source)
		for i, line := range bytes.Split(text, []byte("\n")) {
			if _, mark, ok := bytes.Cut(line, []byte("// line: ")); ok {
				place := fmt.Sprintf("%s:%d", base, i+1)
				marks[string(mark)], marks[base+"/"+string(mark)] = place, place
			}
		}
	}
	program := filepath.Base(w.program) + ".cc"
	for _, name := range names {
		place := marks[program+"/"+name]
		if place == "" {
			place = marks[name]
		}
		if place == "" {
			t.Fatalf("no source has the mark %q", name)
		}
		places = append(places, place)
	}
	return places
}

// wantChain fails the test unless the frames in the twin's files have exactly these places,
// innermost first.
func (w *traceTwin) wantChain(t *testing.T, frames []twinFrame, names ...string) {
	t.Helper()
	var got []string
	for _, f := range frames {
		if _, err := os.Stat(filepath.Join(w.whole, filepath.Base(f.Module))); err != nil {
			continue
		}
		for _, s := range f.Frames {
			if s.Line != 0 {
				got = append(got, fmt.Sprintf("%s:%d", filepath.Base(s.File), s.Line))
			}
		}
		if len(f.Frames) == 0 {
			got = append(got, fmt.Sprintf("%s: unresolved: %s", f.Module, f.Reason))
		}
	}
	if diff := cmp.Diff(w.chain(t, names...), got); diff != "" {
		t.Errorf("the calls (-), the frames (+):\n%s", diff)
	}
}
