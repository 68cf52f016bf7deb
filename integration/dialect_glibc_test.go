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
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// twinCalls is the stack that a twin prints, diedIn the stack of its fault, and signalled the stack
// that it prints in the handler of the fault.
var (
	twinCalls = []string{"print", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	diedIn    = []string{"fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	signalled = append([]string{"print", "handler"}, diedIn...)
)

// The frames of backtrace_symbols_fd must be resolved. It prints offsets from the load base, and
// names of exported functions.
func TestBacktraceSymbolsAreResolved(t *testing.T) {
	builds := map[string]twinBuild{
		"pie":    {link: []string{"-pie"}},
		"no-pie": {link: []string{"-no-pie"}},
	}
	if long() {
		for _, compiler := range []string{"g++", "clang++-19"} {
			for _, flag := range []string{"-O0", "-O1", "-O2", "-O3"} {
				for _, pie := range []string{"-pie", "-no-pie"} {
					builds[compiler+flag+pie] = twinBuild{compiler: compiler, flags: []string{flag}, link: []string{pie}}
				}
			}
		}
	}
	for name, build := range builds {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "backtrace", build)
			w.wantChain(t, w.frames(t, w.output(t, nil)), twinCalls...)
			w.wantChain(t, w.frames(t, w.output(t, nil, "signal")), signalled...)
		})
	}
}

var forms *traceTwin

// newForms returns the twin built from forms.cc, with the other names of its program that some
// forms need. Tests share the twin, and must not change its files.
func newForms(t *testing.T) *traceTwin {
	t.Helper()
	if forms == nil {
		w := newTraceTwinIn(t, filepath.Join(filepath.Dir(command), "forms"), "forms", twinBuild{})
		for _, name := range []string{"mongod", "clickhouse"} {
			if err := os.Symlink(filepath.Join(w.whole, "forms"), filepath.Join(w.whole, name)); err != nil {
				t.Fatal(err)
			}
		}
		forms = w
	}
	return forms
}

// Frames of glibc must be resolved in the forms of many programs, which add their own text, or
// print the results of dladdr.
func TestFormsOfBacktraceSymbolsAreResolved(t *testing.T) {
	w := newForms(t)
	for _, form := range []struct {
		name          string
		plain, signal []string // the calls; nil: this form is not printed
	}{
		{"ceph", twinCalls, signalled},
		{"samba", nil, signalled},
		{"openmpi", nil, signalled},
		{"godot", nil, signalled},
		{"v8", twinCalls, nil},
		{"mysql", nil, signalled},
		{"redis", nil, append([]string{"fall"}, diedIn...)},
		{"segfault", nil, diedIn},
		{"abort", twinCalls, nil},
		{"bare", nil, signalled},
		{"python", twinCalls, signalled},
		{"execinfo", nil, signalled},
		{"mtrace", twinCalls, nil},
		{"mtrace-old", nil, signalled},
		{"clickhouse", twinCalls, diedIn},
		{"mongodb", append(slices.Clone(twinCalls), twinCalls...), append(slices.Clone(signalled), signalled...)},
		{"mongodb-old", nil, signalled},
	} {
		t.Run(form.name, func(t *testing.T) {
			if form.plain != nil {
				w.wantChain(t, w.frames(t, w.output(t, nil, form.name)), form.plain...)
			}
			if form.signal != nil {
				w.wantChain(t, w.frames(t, w.output(t, nil, form.name, "signal")), form.signal...)
			}
			log := w.output(t, nil, form.name)
			if form.name == "mongodb" { // the frames must be found among other lines
				log = append([]byte("{\"s\":\"I\",\"msg\":\"Waiting for connections\"}\n"), log...)
				w.wantChain(t, w.frames(t, log), form.plain...)
			}
			once := w.text(t, log)
			if diff := cmp.Diff(once, w.text(t, []byte(once))); diff != "" {
				t.Errorf("filtered once (-), filtered twice (+):\n%s", diff)
			}
			answers := regexp.MustCompile(`,"symbolized":\["(?:[^"\\]|\\.)*"(?:,"(?:[^"\\]|\\.)*")*\]`)
			if strings.HasPrefix(form.name, "mongodb") { // the answers are members of the frames' objects
				if diff := cmp.Diff(string(log), answers.ReplaceAllString(once, "")); diff != "" || answers.FindString(once) == "" {
					t.Errorf("the log (-), filtered, without answers (+):\n%s\n%s", diff, once)
				}
			}
			for line := range strings.Lines(once) {
				if strings.HasPrefix(line, "{") && !json.Valid([]byte(line)) {
					t.Errorf("not JSON: %s", line)
				}
			}
		})
	}
}

// calledAs runs the stripped program under another name.
func (w *traceTwin) calledAs(t *testing.T, name string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command(w.program, args...)
	cmd.Args[0] = name
	out, _ := producers.combined(t, cmd)
	return out
}

// glibc names the executable by the process title. The file must be found if the title begins with
// its absolute path, or with --image. A relative path must not be used, since symfilter runs in
// another folder.
func TestProgramsAreFoundByTheirTitles(t *testing.T) {
	w := newTraceTwin(t, "backtrace", twinBuild{})
	raw := []string{"visit", "settle", "close", "audit"} // the library's frames, which have a path
	for title, image := range map[string]string{
		"./backtrace":                             "backtrace",
		"../run/backtrace":                        "backtrace",
		"backtrace":                               "backtrace",
		"backtrace *:6379":                        "backtrace",
		"backtrace: shop ledger [local] SELECT":   "backtrace",
		"backtrace unixsocket:/tmp/x":             "backtrace",
		w.program + " 127.0.0.1:6379 [cluster]":   "",
		w.program:                                 "",
		"/nowhere/backtrace":                      "backtrace",
		"master process " + w.program + " -g off": "",
	} {
		log := w.calledAs(t, title)
		if image == "" {
			w.wantChain(t, w.frames(t, log), twinCalls...)
			continue
		}
		var resolved []twinFrame
		for _, f := range w.frames(t, log) {
			if len(f.Frames) > 0 {
				resolved = append(resolved, f)
			}
		}
		w.wantChain(t, resolved, raw...)
		w.wantChain(t, w.frames(t, log, "--image", image+"="+w.program), twinCalls...)
	}
}

// Files of --image may be anywhere, even with --no-paths and --sysroot, and even if the log has the
// module's build ID.
func TestImagesOfTheOperatorAreOpened(t *testing.T) {
	w := newForms(t)
	for _, form := range []string{"ceph", "clickhouse"} {
		cmd := exec.Command(command, "--no-paths", "--sysroot", t.TempDir(), "--output=json",
			"--image", "libledger.so", "--image", "clickhouse=forms", "--image", "forms=forms")
		cmd.Dir, cmd.Stdin = w.whole, bytes.NewReader(w.output(t, nil, form))
		out, err := producers.output(t, cmd)
		if err != nil {
			t.Fatal(err)
		}
		w.wantChain(t, framesIn(t, string(out)), twinCalls...)
	}
}

// The files at the logged paths are of another build, so they must not resolve any frame.
func TestOtherBuildsAnswerNothing(t *testing.T) {
	w := newTraceTwin(t, "forms", twinBuild{})
	other := newTraceTwin(t, "forms", twinBuild{flags: []string{"-O1", "-fno-inline"}})
	logs := make(map[string][]byte)
	for _, form := range []string{"ceph", "abort", "bare", "mysql", "python", "execinfo", "redis", "mtrace", "mtrace-old"} {
		logs[form] = w.output(t, nil, form, "signal")
	}
	for _, file := range []string{"forms", "libledger.so"} {
		run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
	}
	for form, log := range logs {
		frames := w.frames(t, log, "--debug-file-directory", other.debug)
		if len(frames) == 0 {
			t.Errorf("%s: no frames in\n%s", form, log)
		}
		for _, f := range frames {
			if filepath.Dir(f.Module) == w.dir && len(f.Frames) > 0 {
				t.Errorf("%s: %s+%s is answered by another build: %+v", form, f.Module, f.Offset, f.Frames)
			}
		}
	}
}

// If each line has its process ID, two interleaved traces must be resolved. If both have the same
// ID, no frame may get a wrong answer.
func TestMixedTracesAreToldApart(t *testing.T) {
	w := newForms(t)
	var traces [2][]string
	for i := range traces {
		log := strings.ReplaceAll(string(w.output(t, nil, "openmpi", "signal")), ":04711]", fmt.Sprintf(":%05d]", 4711+i))
		traces[i] = strings.SplitAfter(strings.TrimSpace(log)+"\n", "\n")
	}
	var log strings.Builder
	for i := range traces[0] {
		log.WriteString(traces[0][i] + traces[1][i])
	}
	var want []string
	for _, call := range signalled {
		switch call {
		case "settle", "run": // belongs to the previous frame
		case "visit":
			want = append(want, "visit", "settle", "visit", "settle")
		case "count":
			want = append(want, "count", "run", "count", "run")
		default:
			want = append(want, call, call)
		}
	}
	w.wantChain(t, w.frames(t, []byte(log.String())), want...)
	right := make(map[string]bool)
	for _, place := range w.chain(t, want...) {
		right[place] = true
	}
	for _, f := range w.frames(t, []byte(strings.ReplaceAll(log.String(), ":04712]", ":04711]"))) {
		for _, s := range f.Frames {
			if place := fmt.Sprintf("%s:%d", filepath.Base(s.File), s.Line); filepath.Dir(f.Module) == w.dir && s.Line > 0 && !right[place] {
				t.Errorf("the wrong answer %s for %s+%s", place, f.Module, f.Offset)
			}
		}
	}
}

// If the maps in the log have wrong addresses, or mark the library as deleted, no frame of the
// library may be resolved.
func TestMapsThatLieAnswerNothing(t *testing.T) {
	w := newForms(t)
	log := string(w.output(t, nil, "bare"))
	w.wantChain(t, w.frames(t, []byte(log)), twinCalls...)
	w.wantRaw(t, w.frames(t, []byte(strings.ReplaceAll(log, "libledger.so\n", "libledger.so (deleted)\n"))))
	var moved strings.Builder
	for _, line := range strings.SplitAfter(log, "\n") {
		var from, to, offset uint64
		if n, _ := fmt.Sscanf(line, "%x-%x r-xp %x", &from, &to, &offset); n == 3 {
			_, rest, _ := strings.Cut(line, " r-xp ")
			line = fmt.Sprintf("%x-%x r-xp %08x%s", from-0x1000, to, offset, rest[8:])
		}
		moved.WriteString(line)
	}
	w.wantRaw(t, w.frames(t, []byte(moved.String())))
}

// wantRaw fails the test if a frame of the library is resolved, or if frames has no frame of the
// library.
func (w *traceTwin) wantRaw(t *testing.T, frames []twinFrame) {
	t.Helper()
	seen := false
	for _, f := range frames {
		if !strings.HasSuffix(f.Module, "libledger.so") {
			continue
		}
		if seen = true; len(f.Frames) > 0 {
			t.Errorf("the library answers: %+v", f)
		}
	}
	if !seen {
		t.Errorf("no frame of the library in %+v", frames)
	}
}
