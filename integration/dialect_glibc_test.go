//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// backtrace_symbols_fd prints offsets from the load base, and names of exported functions.
func TestBacktraceSymbolsAreResolved(t *testing.T) {
	calls := []string{"print", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	signalled := []string{"print", "handler", "fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "backtrace", twinBuild{link: link})
			w.wantChain(t, w.frames(t, w.output(t, nil)), calls...)
			w.wantChain(t, w.frames(t, w.output(t, nil, "signal")), signalled...)
		})
	}
}

// A file that is not the one that ran answers nothing, whether it is another build or another
// program.
func TestOtherBuildsAnswerNothing(t *testing.T) {
	w := newTraceTwin(t, "backtrace", twinBuild{})
	log := w.output(t, nil)
	other := newTraceTwin(t, "backtrace", twinBuild{flags: []string{"-O0"}})
	for _, file := range []string{"backtrace", "libledger.so"} {
		run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
	}
	for _, f := range w.frames(t, log, "--debug-file-directory", other.debug) {
		if filepath.Dir(f.Module) == w.dir && len(f.Frames) > 0 {
			t.Errorf("%s+%s is answered by another build: %+v", f.Module, f.Offset, f.Frames)
		}
	}
	if err := os.Remove(filepath.Join(w.dir, "libledger.so")); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(command, "--no-default-debug-directories", "--no-paths", "-").Output()
	if err != nil || len(out) != 0 {
		t.Fatalf("%v: %s", err, out)
	}
}
