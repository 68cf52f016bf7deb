//go:build linux

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// diedCalls is the stack of a twin's program that crashes in its function fall.
var diedCalls = []string{"inventory.h/fall", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}

// If Java's error log is a file, its frames must be resolved in place. The log names libraries
// without folders; the maps, some hundred lines later, have their paths.
func TestErrorLogsOfJavaAreResolvedInFiles(t *testing.T) {
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "hserr", twinBuild{link: link})
			log := writeLog(t, w.output(t, nil))
			w.wantChain(t, w.frames(t, nil, log), append([]string{"inventory.h/fall"}, diedCalls...)...)
		})
	}
}

// Two JVMs in one log have their libraries at different addresses. The frames of both must be
// resolved.
func TestErrorLogsOfSeveralMachinesAreResolved(t *testing.T) {
	w := newTraceTwin(t, "hserr", twinBuild{})
	log := append(w.output(t, nil), w.output(t, nil)...)
	first := append([]string{"inventory.h/fall"}, diedCalls...)
	w.wantChain(t, w.frames(t, nil, writeLog(t, log)), append(first, first...)...)
	w.wantChain(t, resolvedOf(w.frames(t, log)), append(diedCalls[:len(diedCalls):len(diedCalls)], diedCalls...)...)
}

// Frames of an abort in old glibc must be resolved. Up to glibc 2.25, abort prints maps after the
// frames, and names the program by its process title.
func TestAbortsOfOldGlibcAreResolvedByTheirMaps(t *testing.T) {
	w := newTraceTwin(t, "oldabort", twinBuild{})
	cmd := exec.Command("./oldabort")
	cmd.Dir = w.dir
	log, _ := producers.combined(t, cmd)
	calls := []string{"oldabort.cc/print", "visit", "settle", "close", "audit", "count", "run", "main"}
	w.wantChain(t, w.frames(t, nil, writeLog(t, log)), calls...)
	w.wantChain(t, w.frames(t, log), calls...)
	w.wantNone(t, log)
}

// In a pipe, frames are printed before the maps arrive. Frames that only the maps locate must be
// repeated after the last map, as footnotes.
func TestErrorLogsOfJavaHaveFootnotesInPipes(t *testing.T) {
	w := newTraceTwin(t, "hserr", twinBuild{})
	log := w.output(t, nil)
	out := w.text(t, log)
	notes := regexp.MustCompile(`(?m)^  (#\d+|\(inlined by\)) .*\n`).FindAllString(out, -1)
	got := strings.Split(strings.ReplaceAll(out, strings.Join(notes, ""), ""), "\n")
	for i, line := range strings.Split(string(log), "\n") { // frames of the C library are found without maps
		if i >= len(got) || got[i] != line && !(strings.HasPrefix(got[i], line+"  ") && strings.Contains(line, "[libc.so.6+0x")) {
			t.Fatalf("the footnotes are not together, or line %d has changed:\n%s", i+1, out)
		}
	}
	if before, _, _ := strings.Cut(out, notes[0]); !regexp.MustCompile(`\[vsyscall\]\n$`).MatchString(before) {
		t.Errorf("the footnotes do not follow the last map:\n%s", out)
	}
	w.wantSame(t, log)
	resolved := slices.DeleteFunc(w.frames(t, log), func(f twinFrame) bool { return len(f.Frames) == 0 })
	w.wantChain(t, resolved, diedCalls...)
}

// A real JVM calls a function that crashes in place of a Java method. All frames must be resolved,
// those of the JVM's library as by llvm-symbolizer.
func TestErrorLogOfARealMachine(t *testing.T) {
	testenv.OnlyLong(t)
	need(t, "java")
	machine := testenv.Find(t, "/usr/lib/jvm/java-17-openjdk-*/lib/server/libjvm.so")
	w := newTraceTwin(t, "jni", twinBuild{link: []string{"-ldl"}})
	log := filepath.Join(t.TempDir(), "hs_err")
	w.output(t, nil, machine, "-XX:ErrorFile="+log)
	frames := w.frames(t, nil, "--debug-file-directory", "/usr/lib/debug", log)
	// The JVM follows frame pointers. fall has none, so leaf is missing.
	w.wantChain(t, frames, "inventory.h/fall", "inventory.h/fall", "visit", "settle", "close", "audit", "count", "run", "call", "start", "main")
	var got strings.Builder
	question := []string{"--obj=" + machine, "--functions", "--inlines", "--debug-file-directory=/usr/lib/debug"}
	for _, f := range frames {
		if filepath.Base(f.Module) != "libjvm.so" {
			continue
		}
		question = append(question, f.Offset)
		for _, s := range f.Frames {
			fmt.Fprintf(&got, "%s\n%s:%d\n", s.Function, s.File, s.Line)
		}
		got.WriteString("\n")
	}
	if len(question) < 7 {
		t.Errorf("only %d frames of the machine itself", len(question)-4)
	}
	want := run(t, nil, "llvm-symbolizer-19", question...)
	want = regexp.MustCompile(`(?m):\d+$`).ReplaceAllString(want, "")
	if diff := cmp.Diff(want, got.String()); diff != "" {
		t.Errorf("llvm-symbolizer-19 (-), symfilter (+):\n%s", diff)
	}
}

func TestErrorLogsOfJavaAreNotResolvedByOtherBuilds(t *testing.T) {
	w := newTraceTwin(t, "hserr", twinBuild{})
	log := w.output(t, nil)
	other := newTraceTwin(t, "hserr", twinBuild{flags: []string{"-O0"}})
	for _, file := range []string{"hserr", "libledger.so"} {
		run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
	}
	frames := w.frames(t, log, "--debug-file-directory", other.debug)
	for _, f := range append(frames, w.frames(t, nil, "--debug-file-directory", other.debug, writeLog(t, log))...) {
		if len(f.Frames) > 0 && strings.HasPrefix(f.Module, w.dir) {
			t.Errorf("%s is answered by another build: %+v", f.Module, f.Frames)
		}
	}
}

// writeLog writes a log to a file, and returns its path.
func writeLog(t *testing.T, log []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "log")
	if err := os.WriteFile(path, log, 0o666); err != nil {
		t.Fatal(err)
	}
	return path
}
