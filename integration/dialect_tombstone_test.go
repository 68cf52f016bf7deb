//go:build linux

package integration

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Frames of Android 11, with addresses, and of Android 10, with file offsets, must be resolved.
// Only the build ID identifies a file, since the path is the device's.
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

// Frames of Android 9 must be resolved by the files of --image. They have offsets from the
// executable mapping, but no build ID.
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

// A debug file has no code that could prove that a number is a file offset. With debug files only,
// the number must be read as an address.
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

// Frames in libraries built for Android must be resolved on all machines. A frame has the address
// of the call: odd in Thumb code, and on x86 the return address minus 1.
func TestAndroidLibrariesOfAllMachinesAreResolved(t *testing.T) {
	t.Parallel()
	need(t, "clang++-19", "ld.lld-19", "llvm-objdump-19")
	call := regexp.MustCompile(`(?m)^ *([0-9a-f]+): .*\t(?:bl|blr|blx|calll)\t.*\n *([0-9a-f]+):`)
	code := regexp.MustCompile(`LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) .* R E `)
	for _, m := range []struct {
		name, target, flag string
		number             func(call, after uint64) uint64
	}{
		{"aarch64", "aarch64-linux-android29", "-O2", func(call, _ uint64) uint64 { return call }},
		{"arm", "armv7a-linux-androideabi29", "-marm", func(call, _ uint64) uint64 { return call }},
		{"thumb", "armv7a-linux-androideabi29", "-mthumb", func(call, _ uint64) uint64 { return call | 1 }},
		{"x86", "i686-linux-android29", "-O2", func(_, after uint64) uint64 { return after - 1 }},
	} {
		t.Run(m.name, func(t *testing.T) {
			dir := t.TempDir()
			w := &traceTwin{whole: dir, debug: filepath.Join(dir, "debug")}
			library := filepath.Join(dir, "libledger.so")
			run(t, nil, "clang++-19", "--target="+m.target, m.flag, "-g", "-O2", "-fPIC", "-shared", "-nostdlib", "-fuse-ld=lld",
				"-Wl,--build-id", filepath.Join(checkout, "integration", "testdata", "twin", "ledger.cc"), "-o", library)
			id := buildIDOf(t, library)
			folder := filepath.Join(w.debug, ".build-id", id[:2])
			if err := os.MkdirAll(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(library, filepath.Join(folder, id[2:]+".debug")); err != nil {
				t.Fatal(err)
			}
			segment := code.FindStringSubmatch(run(t, nil, "readelf", "-lW", library))
			offset, _ := strconv.ParseUint(segment[1], 16, 64)
			addr, _ := strconv.ParseUint(segment[2], 16, 64)
			calls := call.FindAllStringSubmatch(run(t, nil, "llvm-objdump-19", "-d", "--no-show-raw-insn", library), -1)
			if len(calls) < 3 {
				t.Fatalf("%d calls", len(calls))
			}
			for _, less := range []uint64{0, addr - offset} { // Android 11, Android 10
				var log strings.Builder
				var want, got []string
				for i, c := range calls {
					at, _ := strconv.ParseUint(c[1], 16, 64)
					after, _ := strconv.ParseUint(c[2], 16, 64)
					at = m.number(at, after)
					want = append(want, fmt.Sprintf("%#x", at))
					fmt.Fprintf(&log, "      #%02d pc %08x  /system/lib/libledger.so (BuildId: %s)\n", i+1, at-less, id)
				}
				for _, f := range w.frames(t, []byte(log.String())) {
					if len(f.Frames) > 0 && f.Frames[0].Line > 0 {
						got = append(got, f.Offset)
					}
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("calls (-), frames (+):\n%s", diff)
				}
			}
		})
	}
}
