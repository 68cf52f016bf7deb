//go:build linux

package integration

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/testenv"
)

// Frames with a path and an offset must be resolved, also after a signal's trampoline, where the
// next address is exact. Chromium prints the address of the call, other programs the return
// address.
func TestFramesWithAPathAndAnOffsetAreResolved(t *testing.T) {
	t.Parallel()
	for _, build := range []string{"lld", "no-pie"} {
		w := emitter(t, build)
		for _, form := range []string{"chromium", "firefox", "llvm"} {
			t.Run(form+"/"+build, func(t *testing.T) {
				w.wantChain(t, w.frames(t, w.output(t, nil, form)), emittedCalls...)
				w.wantChain(t, w.frames(t, w.output(t, nil, form, "signal")), signalledCalls...)
			})
		}
	}
}

// Frames of Node.js must be resolved. It prints addresses of the process, and exported names, which
// prove where modules were loaded.
func TestFramesOfNodeAreResolved(t *testing.T) {
	t.Parallel()
	for _, build := range []string{"pie", "no-pie"} {
		w := emitter(t, build)
		t.Run(build, func(t *testing.T) {
			w.wantChain(t, w.frames(t, w.output(t, nil, "node")), emittedCalls...)
		})
	}
}

func TestOtherBuildsAnswerNothingToBrowsers(t *testing.T) {
	t.Parallel()
	w := emitter(t, "lld")
	for _, form := range []string{"chromium", "firefox", "llvm", "node"} {
		w.answersNothing(t, w.output(t, nil, form, "signal"), emitter(t, "pie"))
	}
}

// Frames in an addon of Node.js must be resolved. Frames of Node.js itself have only an address and
// the base name of the file.
func TestAddonsOfNodeAreResolved(t *testing.T) {
	testenv.OnlyLong(t)
	const header = "/usr/include/node/node_api.h"
	need(t, "node", header)
	t.Parallel()
	w := newTraceTwin(t, "addon", twinBuild{flags: []string{"-fPIC", "-I" + filepath.Dir(header)}, link: []string{"-shared"}})
	script := "const m = {exports: {}}; process.dlopen(m, process.argv[1]); m.exports.audit()"
	log, _ := producers.combined(t, exec.Command("node", "-e", script, w.program))
	calls := []string{"leaf", "visit", "settle", "close", "audit", "count", "run", "audit-from-script"}
	w.wantChain(t, w.frames(t, log), calls...)
}

// Breakpad prints offsets, and after all threads the first bytes of the build IDs. These bytes must
// identify files in a tree, or confirm a file that --image names.
func TestMinidumpsAreResolvedByTheListOfModules(t *testing.T) {
	need(t, "/usr/lib/debug/.build-id") // debug file of libc
	t.Parallel()
	w := emitter(t, "lld")
	log := w.output(t, nil, "breakpad")
	w.wantChain(t, w.frames(t, log), emittedCalls...)
	w.wantChain(t, w.frames(t, w.output(t, nil, "breakpad-functions")), emittedCalls...)
	w.wantChain(t, w.frames(t, w.output(t, nil, "breakpad", "signal")), signalledCalls...)

	// libc's debug file has no code, but the symbol of the trampoline. So the frame after the
	// trampoline must be looked up as an exact address.
	offsets := func(form string) (all []string) {
		for _, f := range w.frames(t, w.output(t, nil, form, "signal")) {
			if len(f.Frames) > 0 && f.Frames[0].Line != 0 && strings.HasPrefix(filepath.Base(f.Module), "emit") {
				all = append(all, f.Offset)
			}
		}
		return all
	}
	if diff := cmp.Diff(offsets("firefox"), offsets("breakpad")); diff != "" {
		t.Errorf("offsets in a file with code (-), without (+):\n%s", diff)
	}

	resolved := func(library string) (n int) {
		out := run(t, log, command, "--no-default-debug-directories", "--image", "libledger.so="+library, "-")
		for line := range strings.Lines(out) {
			if strings.Contains(line, "  libledger.so!") {
				n++
			}
		}
		return n
	}
	if n := resolved(filepath.Join(w.dir, "libledger.so")); n != 2 { // by symbols, since the third function is static
		t.Errorf("%d frames are resolved by --image, want 2", n)
	}
	if n := resolved(filepath.Join(emitter(t, "pie").dir, "libledger.so")); n != 0 {
		t.Errorf("%d frames are resolved by a file with another build ID", n)
	}
}
