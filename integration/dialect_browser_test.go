//go:build linux

package integration

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// Chromium prints an address in the call, the others a return address; a signal's trampoline makes
// the next frame exact.
func TestFramesWithAPathAndAnOffsetAreResolved(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]twinBuild{"pie": byLLD, "no-pie": {link: []string{"-no-pie"}}} {
		w := newEmitter(t, b)
		for _, form := range []string{"chromium", "firefox", "llvm"} {
			t.Run(form+"/"+name, func(t *testing.T) {
				w.wantChain(t, w.frames(t, w.output(t, nil, form)), emittedCalls...)
				w.wantChain(t, w.frames(t, w.output(t, nil, form, "signal")), signalledCalls...)
			})
		}
	}
}

// Node prints addresses of the process and exported names, which show where modules were loaded.
func TestFramesOfNodeAreResolved(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]twinBuild{"pie": {link: []string{"-rdynamic"}}, "no-pie": {link: []string{"-no-pie"}}} {
		w := newEmitter(t, b)
		t.Run(name, func(t *testing.T) {
			w.wantChain(t, w.frames(t, w.output(t, nil, "node")), emittedCalls...)
		})
	}
}

// A file that is not the one that ran answers nothing.
func TestOtherBuildsAnswerNothingToBrowsers(t *testing.T) {
	t.Parallel()
	w := newEmitter(t, byLLD)
	logs := map[string][]byte{}
	for _, form := range []string{"chromium", "firefox", "llvm", "node"} {
		logs[form] = w.output(t, nil, form, "signal")
	}
	other := newEmitter(t, twinBuild{compiler: "clang++-19", flags: []string{"-fuse-ld=lld", "-O0"}})
	for _, file := range []string{"emit", "libledger.so"} {
		run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
	}
	for form, log := range logs {
		for _, f := range w.frames(t, log, "--debug-file-directory", other.debug) {
			if filepath.Dir(f.Module) == w.dir && len(f.Frames) > 0 {
				t.Errorf("%s: %s+%s is answered by another build: %+v", form, f.Module, f.Offset, f.Frames)
			}
		}
	}
}

// The real Node.js, whose own frames have addresses of a file that is called by its name.
func TestAddonsOfNodeAreResolved(t *testing.T) {
	if !long() {
		t.Skip("TEST_LONG=1 runs Node.js")
	}
	const header = "/usr/include/node/node_api.h"
	need(t, "node", header)
	t.Parallel()
	w := newTraceTwin(t, "addon", twinBuild{flags: []string{"-fPIC", "-I" + filepath.Dir(header)}, link: []string{"-shared"}})
	script := "const m = {exports: {}}; process.dlopen(m, process.argv[1]); m.exports.audit()"
	log, _ := exec.Command("node", "-e", script, w.program).CombinedOutput()
	calls := []string{"leaf", "visit", "settle", "close", "audit", "count", "run", "audit-from-script"}
	w.wantChain(t, w.frames(t, log), calls...)
}
