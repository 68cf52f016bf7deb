//go:build linux

package integration

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// libraryTwin builds a twin with a stack-printing library, from the packages of the group long in
// scripts/install-deps. TestTraces tests the forms without these libraries.
func libraryTwin(t *testing.T, name string, link ...string) *traceTwin {
	t.Helper()
	testenv.OnlyLong(t)
	header := map[string]string{
		"glog": "/usr/include/glog/logging.h", "absl": "/usr/include/absl/debugging/symbolize.h",
		"boost": "/usr/include/boost/stacktrace.hpp", "backward": "/usr/include/backward.hpp",
	}[name]
	need(t, header)
	switch name {
	case "glog":
		link = append(link, "-lglog")
	case "absl":
		need(t, "pkg-config")
		link = append(link, strings.Fields(run(t, nil, "pkg-config", "--libs", "absl_failure_signal_handler", "absl_symbolize"))...)
	}
	return newTraceTwin(t, name, twinBuild{link: link})
}

// ofTwin removes the calls in the library's own files from frames, and the frames that have no call
// left.
func ofTwin(frames []twinFrame, library string) (own []twinFrame) {
	for _, f := range frames {
		calls := f.Frames[:0:0]
		for _, s := range f.Frames {
			if !strings.Contains(s.File, library) {
				calls = append(calls, s)
			}
		}
		if f.Frames = calls; len(calls) > 0 {
			own = append(own, f)
		}
	}
	return own
}

var (
	checkedCalls = []string{"leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	faultedCalls = []string{"fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
)

// Frames of glog must be resolved by maps in the log or, in a program at a fixed address, by
// --image. glog prints no modules.
func TestGlogIsResolved(t *testing.T) {
	for name, link := range map[string]string{"pie": "-pie", "no-pie": "-no-pie"} {
		t.Run(name, func(t *testing.T) {
			w := libraryTwin(t, "glog", link)
			w.wantChain(t, w.tracedFrames(t, w.output(t, nil, "maps")), checkedCalls...)
			w.wantChain(t, w.tracedFrames(t, w.output(t, nil, "maps", "signal")), faultedCalls...)
			log := w.output(t, nil)
			if got := w.text(t, log); got != string(log) {
				t.Errorf("without a base, the trace is\n%s", got)
			}
			if name == "no-pie" {
				w.wantChain(t, w.tracedFrames(t, log, "--image", w.program), "leaf", "count", "run", "main")
			}
		})
	}
}

// Abseil's handler follows frame pointers, which Debian's C library lacks. So its trace has only
// the address of the fault, which no preceding call can prove. The address must be resolved only
// with --image.
func TestAbseilIsResolvedByAnImage(t *testing.T) {
	w := libraryTwin(t, "absl", "-no-pie")
	log := w.output(t, nil, "maps")
	if got := w.text(t, log); got != string(log) {
		t.Errorf("without a proof, the trace is\n%s", got)
	}
	w.wantChain(t, w.tracedFrames(t, log, "--image", w.program), "fall")
}

// Boost prints a name or an address for a call, never both. Its trace has only one address in the
// library, for which one call is not enough proof. This address must be resolved only with --image.
func TestBoostIsResolved(t *testing.T) {
	for name, link := range map[string]string{"pie": "-pie", "no-pie": "-no-pie"} {
		t.Run(name, func(t *testing.T) {
			w := libraryTwin(t, "boost", link)
			maps := w.output(t, nil, "maps")
			w.wantChain(t, ofTwin(w.tracedFrames(t, maps), "/boost/"), "leaf", "count", "run", "main")
			library := "libledger.so=" + filepath.Join(w.dir, "libledger.so")
			w.wantChain(t, ofTwin(w.tracedFrames(t, maps, "--image", library), "/boost/"), "leaf", "visit", "settle", "count", "run", "main")
			w.wantChain(t, ofTwin(w.tracedFrames(t, w.output(t, nil)), "/boost/"), "leaf", "count", "run", "main")
		})
	}
}

// Frames of backward-cpp must be resolved. It prints modules and exported functions, with the
// innermost call last.
func TestBackwardIsResolved(t *testing.T) {
	for name, link := range map[string]string{"pie": "-pie", "no-pie": "-no-pie"} {
		t.Run(name, func(t *testing.T) {
			w := libraryTwin(t, "backward", link)
			for _, signal := range []bool{false, true} {
				args, want := []string{}, checkedCalls
				if signal {
					args, want = []string{"signal"}, faultedCalls
				}
				frames := ofTwin(w.tracedFrames(t, w.output(t, nil, args...)), "/backward.hpp")
				slices.Reverse(frames)
				w.wantChain(t, frames, want...)
			}
		})
	}
}
