//go:build linux

package integration

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The line that the kernel logs for a process that it has killed has the name of a file, and no
// path. The code on the next line proves which file it is.
func TestProcessesThatDiedAreResolvedByTheirCode(t *testing.T) {
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "death", twinBuild{link: link})
			for _, form := range []string{"new", "old"} {
				log := w.output(t, nil, form)
				frames := w.frames(t, log, "--symbol-path", w.dir)
				w.wantChain(t, frames, "inventory.h/fall")
				if len(frames) != 1 || frames[0].Verified != "code" {
					t.Errorf("%+v", frames)
				}
				if got := w.text(t, log); got != string(log) {
					t.Errorf("no file is named, but the line is answered: %s", got)
				}
				line, _, _ := strings.Cut(string(log), "\n")
				if got := w.text(t, []byte(line+"\n"), "--symbol-path", w.dir); got != line+"\n" {
					t.Errorf("without the code the line is answered: %s", got)
				}
				got := w.text(t, []byte(line+"\n"), "--image", "death="+w.program)
				if place := w.chain(t, "inventory.h/fall")[0]; !strings.HasSuffix(got, "/"+place+"\n") {
					t.Errorf("with --image: %s, want %s", got, place)
				}
			}
		})
	}
}

// A file of another build has other code at the place.
func TestProcessesThatDiedAreNotResolvedByOtherBuilds(t *testing.T) {
	w := newTraceTwin(t, "death", twinBuild{})
	log := w.output(t, nil)
	other := newTraceTwin(t, "death", twinBuild{flags: []string{"-O1"}})
	for _, args := range [][]string{{"--symbol-path", other.dir}, {"--image", "death=" + other.program}, {"--symbol-path", w.dir, "--no-paths"}} {
		if got := w.text(t, log, append(args, "--debug-file-directory", other.debug)...); got != string(log) {
			t.Errorf("%v: %s", args, got)
		}
	}
	both := w.frames(t, log, "--symbol-path", other.dir, "--symbol-path", w.dir)
	w.wantChain(t, both, "inventory.h/fall")
}

// The kernel's own log of a process that dies.
func TestKernelLogOfAProcessThatDied(t *testing.T) {
	if !long() {
		t.Skip("long")
	}
	need(t, "dmesg")
	if err := exec.Command("dmesg").Run(); err != nil {
		t.Skipf("the kernel's log is not readable here: %v", err)
	}
	if on, err := os.ReadFile("/proc/sys/debug/exception-trace"); err != nil || strings.TrimSpace(string(on)) != "1" {
		t.Skip("the kernel does not log processes that die")
	}
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			w := newTraceTwin(t, "fault", twinBuild{link: link})
			cmd := exec.Command(w.program)
			_ = cmd.Run()
			var log strings.Builder
			mark := fmt.Sprintf("fault[%d]", cmd.Process.Pid)
			lines := strings.SplitAfter(run(t, nil, "dmesg"), "\n")
			for i, line := range lines {
				if strings.Contains(line, mark) {
					log.WriteString(line + lines[i+1])
				}
			}
			if log.Len() == 0 {
				t.Skip("the kernel's log has no line for the process: its limit of messages was reached")
			}
			frames := w.frames(t, []byte(log.String()), "--symbol-path", filepath.Dir(w.program))
			w.wantChain(t, frames, "inventory.h/fall")
		})
	}
}
