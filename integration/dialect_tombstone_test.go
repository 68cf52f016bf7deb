//go:build linux

package integration

import (
	"os"
	"path/filepath"
	"testing"
)

// emittedCalls and signalledCalls are the calls of testdata/twin/emit.cc.
var (
	emittedCalls   = []string{"print", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	signalledCalls = []string{"print", "handler", "fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
)

// lld gives the segments of a file other offsets than addresses.
var byLLD = twinBuild{compiler: "clang++-19", flags: []string{"-fuse-ld=lld"}}

// newEmitter builds testdata/twin/emit.cc. Nothing stops while it prints: each form is printed by
// one process.
func newEmitter(t *testing.T, b twinBuild) *traceTwin {
	t.Helper()
	return newTraceTwin(t, "emit", b)
}

// The numbers of Android 11 are addresses, those of Android 10 file offsets. Only a build ID says
// which file it is: the path is the one of the device.
func TestAndroidFramesAreResolved(t *testing.T) {
	t.Parallel()
	for name, b := range map[string]twinBuild{"gcc": {}, "lld": byLLD} {
		w := newEmitter(t, b)
		for _, form := range []string{"android", "android-10"} {
			t.Run(name+"/"+form, func(t *testing.T) {
				w.wantChain(t, w.frames(t, w.output(t, nil, form)), emittedCalls...)
				w.wantChain(t, w.frames(t, w.output(t, nil, form, "signal")), signalledCalls...)
			})
		}
	}
}

// Android 9 has no build ID, and counts from the executable mapping: --image names the files.
func TestAndroidFramesAreResolvedByImage(t *testing.T) {
	t.Parallel()
	w := newEmitter(t, byLLD)
	images := []string{"--image", "emit=" + w.program, "--image", "libledger.so=" + filepath.Join(w.dir, "libledger.so")}
	w.wantChain(t, w.frames(t, w.output(t, nil, "android-9"), images...), emittedCalls...)
	log := w.output(t, nil, "android-9", "signal")
	w.wantChain(t, w.frames(t, log, images...), signalledCalls...)

	other := newEmitter(t, twinBuild{compiler: "clang++-19", flags: []string{"-fuse-ld=lld", "-O0"}})
	for _, file := range []string{"emit", "libledger.so"} {
		run(t, nil, "cp", filepath.Join(other.dir, file), filepath.Join(w.dir, file))
	}
	for _, f := range w.frames(t, log, append(images, "--debug-file-directory", other.debug)...) {
		if len(f.Frames) > 0 {
			t.Errorf("%s+%s is answered by another build: %+v", f.Module, f.Offset, f.Frames)
		}
	}
}

// A debug file without code cannot show that a number is an offset: it is an address.
func TestAndroidFramesAreResolvedByFilesWithoutCode(t *testing.T) {
	t.Parallel()
	w := newEmitter(t, byLLD)
	for _, file := range []string{"emit", "libledger.so"} {
		whole := filepath.Join(w.whole, file)
		id := buildIDOf(t, whole)
		debug := filepath.Join(w.debug, ".build-id", id[:2], id[2:]+".debug")
		if err := os.Remove(debug); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "objcopy", "--only-keep-debug", whole, debug)
	}
	w.wantChain(t, w.frames(t, w.output(t, nil, "android", "signal")), signalledCalls...)
}
