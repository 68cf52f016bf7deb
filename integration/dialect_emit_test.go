//go:build linux

package integration

import (
	"bytes"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// emittedCalls is the stack that testdata/twin/emit.cc prints, and signalledCalls the stack that it
// prints in a signal handler.
var (
	emittedCalls   = []string{"print", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	signalledCalls = []string{"print", "handler", "fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
)

// emitterBuilds are the builds of testdata/twin/emit.cc. In files linked by lld, the offsets of
// segments differ from their addresses.
var emitterBuilds = map[string]twinBuild{
	"pie":    {link: []string{"-rdynamic"}},
	"no-pie": {link: []string{"-no-pie"}},
	"lld":    {compiler: "clang++-19", flags: []string{"-fuse-ld=lld"}},
}

var emitters struct {
	sync.Mutex
	made map[string]*traceTwin
}

// emitter returns a build of testdata/twin/emit.cc. Tests share it, and must not change it.
func emitter(t *testing.T, build string) *traceTwin {
	t.Helper()
	emitters.Lock()
	defer emitters.Unlock()
	if w := emitters.made[build]; w != nil {
		return w
	}
	dir := filepath.Join(filepath.Dir(command), "emitter-"+build)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	w := newTraceTwinIn(t, dir, "emit", emitterBuilds[build])
	if emitters.made == nil {
		emitters.made = make(map[string]*traceTwin)
	}
	emitters.made[build] = w
	return w
}

// answersNothing fails the test if another build resolves a frame of log. Before, it replaces w's
// folder in log by the folder of the other build.
func (w *traceTwin) answersNothing(t *testing.T, log []byte, other *traceTwin, args ...string) {
	t.Helper()
	log = bytes.ReplaceAll(log, []byte(w.dir), []byte(other.dir))
	files, err := os.ReadDir(other.dir)
	if err != nil {
		t.Fatal(err)
	}
	frames := other.frames(t, log, args...)
	if len(frames) == 0 {
		t.Errorf("no frames in\n%s", log)
	}
	for _, f := range frames {
		for _, file := range files {
			if filepath.Base(f.Module) == file.Name() && len(f.Frames) > 0 {
				t.Errorf("%s+%s is answered by another build: %+v", f.Module, f.Offset, f.Frames)
			}
		}
	}
}
