//go:build linux

package integration

import (
	"os"
	"path/filepath"
	"testing"
)

// The numbers of Android 11 are addresses, those of Android 10 file offsets. Only a build ID says
// which file it is: the path is the one of the device.
func TestAndroidFramesAreResolved(t *testing.T) {
	t.Parallel()
	for _, build := range []string{"pie", "lld"} {
		w := emitter(t, build)
		for _, form := range []string{"android", "android-10"} {
			t.Run(build+"/"+form, func(t *testing.T) {
				w.wantChain(t, w.frames(t, w.output(t, nil, form)), emittedCalls...)
				w.wantChain(t, w.frames(t, w.output(t, nil, form, "signal")), signalledCalls...)
			})
		}
	}
}

// Android 9 has no build ID, and counts from the executable mapping: --image names the files.
func TestAndroidFramesAreResolvedByImage(t *testing.T) {
	t.Parallel()
	images := func(w *traceTwin) []string {
		return []string{"--image", "emit=" + w.program, "--image", "libledger.so=" + filepath.Join(w.dir, "libledger.so")}
	}
	w := emitter(t, "lld")
	w.wantChain(t, w.frames(t, w.output(t, nil, "android-9"), images(w)...), emittedCalls...)
	log := w.output(t, nil, "android-9", "signal")
	w.wantChain(t, w.frames(t, log, images(w)...), signalledCalls...)
	other := emitter(t, "pie")
	w.answersNothing(t, log, other, images(other)...)
}

// A debug file without code cannot show that a number is an offset: it is an address.
func TestAndroidFramesAreResolvedByFilesWithoutCode(t *testing.T) {
	t.Parallel()
	shared := emitter(t, "lld")
	w := *shared
	w.debug = t.TempDir()
	for _, file := range []string{"emit", "libledger.so"} {
		whole := filepath.Join(w.whole, file)
		id := buildIDOf(t, whole)
		folder := filepath.Join(w.debug, ".build-id", id[:2])
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		run(t, nil, "objcopy", "--only-keep-debug", whole, filepath.Join(folder, id[2:]+".debug"))
	}
	w.wantChain(t, w.frames(t, w.output(t, nil, "android", "signal")), signalledCalls...)
}
