//go:build linux

package integration

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Heap profiles are not changed; the functions of their addresses follow the maps.
func TestHeapProfilesHaveFootnotes(t *testing.T) {
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "heap", twinBuild{link: link})
			log := w.output(t, nil)
			for _, input := range []string{"-", writeLog(t, log)} {
				out := w.text(t, log, input)
				notes := strings.Join(regexp.MustCompile(`(?m)^  (#\d+|\(inlined by\)) .*\n`).FindAllString(out, -1), "")
				if got, ok := strings.CutSuffix(out, notes); !ok || got != string(log) {
					t.Errorf("the profile has changed:\n%s", out)
				}
				frames := resolvedOf(w.frames(t, log, input))
				w.wantChain(t, frames, "leaf", "visit", "settle", "close", "audit", "count", "run", "main", "second")
				w.wantNone(t, log, input)
			}
		})
	}
}

// Ruby's report of a library that dies in C. The maps follow its frames.
func TestReportOfRubyIsResolved(t *testing.T) {
	if !long() {
		t.Skip("long")
	}
	need(t, "ruby")
	w := newTraceTwin(t, "native", twinBuild{link: []string{"-shared", "-fPIC"}})
	script := `require "fiddle"; l = Fiddle.dlopen("./native"); Fiddle::Function.new(l["inventory_die"], [], Fiddle::TYPE_VOID).call`
	cmd := exec.Command("ruby", "-e", script)
	cmd.Dir = w.dir
	log, _ := cmd.CombinedOutput()
	calls := []string{"inventory.h/fall", "leaf", "visit", "settle", "close", "audit", "count", "run", "die"}
	w.wantChain(t, w.frames(t, nil, writeLog(t, log)), calls...)
	w.wantChain(t, resolvedOf(w.frames(t, log)), calls...)
	w.wantNone(t, log, "-")
	w.wantNone(t, nil, writeLog(t, log))
}

// resolvedOf returns the frames that have an answer.
func resolvedOf(frames []twinFrame) []twinFrame {
	return slices.DeleteFunc(frames, func(f twinFrame) bool { return len(f.Frames) == 0 })
}

// wantNone fails the test if a file of the twin answers a frame of log when its files are those of
// another build. The twin is as before when it returns.
func (w *traceTwin) wantNone(t *testing.T, log []byte, args ...string) {
	t.Helper()
	b := twinBuild{flags: []string{"-O0"}}
	program := filepath.Base(w.program)
	if program == "native" {
		b.link = []string{"-shared", "-fPIC"}
	}
	other := newTraceTwin(t, program, b)
	files := []string{program, "libledger.so"}
	for _, file := range files {
		run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
	}
	for _, f := range w.frames(t, log, append(args, "--debug-file-directory", other.debug)...) {
		if filepath.Dir(f.Module) == w.dir && len(f.Frames) > 0 {
			t.Errorf("%s+%s is answered by another build: %+v", f.Module, f.Offset, f.Frames)
		}
	}
	for _, file := range files {
		run(t, nil, "strip", "-o", filepath.Join(w.dir, file), filepath.Join(w.whole, file))
	}
}
