//go:build linux

package integration

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The forms printed by testdata/twin/traces.cc.
var (
	// the frames have addresses, but no modules
	bareForms = []string{"glog", "absl", "folly", "rust", "stdtrace"}
	// the frames have modules, and numbers or names that prove where the modules were loaded
	fullForms = []string{"glog-paths", "pytorch", "backward", "cpptrace"}
	// only some frames have modules or load addresses
	partForms = []string{"envoy", "seastar", "seastar-list", "boost"}
)

var (
	tracedCalls   = []string{"print", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	tracedSignal  = []string{"print", "handler", "fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	programCalls  = []string{"print", "leaf", "count", "run", "main"}
	unnamedSignal = []string{"print", "handler", "fall", "dying-leaf", "visit", "settle", "count", "run", "main"}
)

// tracedFrames returns the located frames of log, after filtering.
func (w *traceTwin) tracedFrames(t *testing.T, log []byte, args ...string) (located []twinFrame) {
	t.Helper()
	for _, f := range w.frames(t, log, args...) {
		if len(f.Frames) > 0 {
			located = append(located, f)
		}
	}
	return located
}

// callsOf returns the calls that symfilter locates in a trace of this form. Boost prints a name or
// an address, so only its unnamed calls are located.
func callsOf(form string, all, unnamed []string) []string {
	switch form {
	case "boost":
		return unnamed
	}
	return all
}

// TestTraces tests all forms of traces.cc, in a position-independent program and in a program at a
// fixed address.
func TestTraces(t *testing.T) {
	pie, fixed := newTraceTwin(t, "traces", twinBuild{link: []string{"-pie"}}), newTraceTwin(t, "traces", twinBuild{link: []string{"-no-pie"}})
	t.Run("WithMaps", func(t *testing.T) {
		tracesWithMaps(t, pie)
		tracesWithMaps(t, fixed)
	})
	t.Run("WithModules", func(t *testing.T) {
		tracesWithModules(t, pie)
		tracesWithModules(t, fixed)
	})
	t.Run("WithoutModules", func(t *testing.T) {
		addressesAlone(t, pie, fixed)
	})
	t.Run("ResolvedOnce", func(t *testing.T) {
		resolvedOnce(t, pie)
	})
	t.Run("OfOtherBuilds", func(t *testing.T) { // the last test, since it replaces the files
		tracesOfOtherBuilds(t, fixed)
	})
}

// tracesWithMaps tests that all forms are resolved if maps come before or after the trace, even
// across a signal.
func tracesWithMaps(t *testing.T, w *traceTwin) {
	for _, form := range slices.Concat(bareForms, []string{"boost", "envoy", "pytorch", "glog-paths"}) {
		log := w.output(t, nil, form, "signal", "maps-before")
		want := callsOf(form, tracedSignal, unnamedSignal)
		if form == "stdtrace" { // also subtracts 1 from the interrupted address
			want = slices.DeleteFunc(slices.Clone(want), func(mark string) bool { return mark == "fall" })
		}
		if form == "boost" { // one address in the library does not prove the library
			want = slices.DeleteFunc(slices.Clone(want), func(mark string) bool { return mark == "visit" || mark == "settle" })
		}
		w.wantChain(t, w.tracedFrames(t, log), want...)
	}
	w.wantChain(t, w.tracedFrames(t, w.output(t, nil, "glog", "maps-after")), tracedCalls...)
}

// tracesWithModules tests that forms with modules need no maps.
func tracesWithModules(t *testing.T, w *traceTwin) {
	for _, form := range fullForms {
		frames := w.tracedFrames(t, w.output(t, nil, form))
		if form == "backward" { // the innermost call is last
			slices.Reverse(frames)
		}
		w.wantChain(t, frames, tracedCalls...)
	}
	w.wantChain(t, w.tracedFrames(t, w.output(t, nil, "envoy")), programCalls...)
	for _, f := range framesIn(t, w.text(t, w.output(t, nil, "seastar"), "--output=json")) {
		if f.Module == "" && !strings.Contains(f.Reason, "--image FILE names the file") {
			t.Errorf("the reason of a frame of the program is %q", f.Reason)
		}
	}
	for _, form := range []string{"seastar", "seastar-list"} {
		log := w.output(t, nil, form)
		w.wantChain(t, w.tracedFrames(t, log), "visit", "settle", "close", "audit")
		w.wantChain(t, w.tracedFrames(t, log, "--image", w.program), tracedCalls...)
	}
	log := w.output(t, nil, "seastar-id")
	wantInRecords(t, log, "--debug-file-directory", w.debug)
	frames := framesIn(t, w.text(t, log, "--output=json"))
	for i := range frames {
		if frames[i].Module == "" && frames[i].Verified == "build-id" {
			frames[i].Module = w.program // the log has only the build ID
		}
	}
	w.wantChain(t, frames, tracedCalls...)
}

// addressesAlone tests addresses without modules in the files of --image: a program at a fixed
// address, a file with a given base, a library with exported functions in the trace, and a program
// loaded without randomization.
func addressesAlone(t *testing.T, pie, w *traceTwin) {
	library := filepath.Join(w.dir, "libledger.so")
	for _, form := range bareForms {
		log := w.output(t, nil, form)
		if got := w.text(t, log); got != string(log) {
			t.Errorf("%s: without a base, the trace is\n%s", form, got)
		}
		w.wantChain(t, w.tracedFrames(t, log, "--image", w.program), programCalls...)
		w.wantChain(t, w.tracedFrames(t, log, "--image", w.program, "--image", w.program), programCalls...)
		w.wantChain(t, w.tracedFrames(t, log, "--image", w.program, "--image", library), tracedCalls...)
	}
	w, library = pie, filepath.Join(pie.dir, "libledger.so")
	log := string(w.output(t, nil, "folly", "maps-before"))
	base := regexp.MustCompile(`(?m)^([0-9a-f]+)-.* 00000000 .*/traces$`).FindStringSubmatch(log)
	if base == nil {
		t.Fatalf("no map of the program in\n%s", log)
	}
	trace := []byte(log[strings.Index(log, "    @ "):])
	for _, image := range []string{w.program, library} {
		for _, f := range w.tracedFrames(t, trace, "--image", image) {
			if image == w.program {
				t.Errorf("without its base, the program answers %+v", f)
			}
		}
	}
	w.wantChain(t, w.tracedFrames(t, trace, "--image", w.program+"@0x"+base[1]), programCalls...)
	cmd := exec.Command(command, "--explain", "--debug-file-directory", w.debug)
	cmd.Stdin = bytes.NewReader(trace)
	if out, err := producers.combined(t, cmd); err != nil || !strings.Contains(string(out), "/proc/self/maps") {
		t.Errorf("%v: --explain does not name what would help:\n%s", err, out)
	}
	need(t, "setarch")
	if out, err := producers.output(t, exec.Command("setarch", "-R", w.program, "folly")); err != nil && len(out) == 0 {
		t.Logf("addresses are always randomized here: %v", err)
	} else {
		w.wantChain(t, w.tracedFrames(t, out, "--image", w.program), programCalls...)
	}
}

// resolvedOnce tests that filtering a filtered log changes nothing.
func resolvedOnce(t *testing.T, w *traceTwin) {
	forms := strings.Join(slices.Concat(bareForms, fullForms, partForms), ",")
	log := w.output(t, nil, forms, "maps-before")
	id := " (BuildId: " + buildIDOf(t, w.program) + ")\n"
	log = append(log, "Reactor stalled for 33 ms on shard 3. Backtrace: 0x"+placeIn(t, w, "main")+id...)
	once := w.text(t, log, "--image", w.program)
	if lines := strings.Count(once, "ledger.cc:"); lines < 30 {
		t.Fatalf("%d answers in\n%s", lines, once)
	}
	for _, args := range [][]string{nil, {"--keep-raw"}} {
		args = append(args, "--image", w.program)
		once := w.text(t, log, args...)
		if twice := w.text(t, []byte(once), args...); twice != once {
			t.Errorf("%v: filtered twice:\n%s\nonce:\n%s", args, twice, once)
		}
	}
}

// tracesOfOtherBuilds tests that another build's files resolve nothing.
func tracesOfOtherBuilds(t *testing.T, w *traceTwin) {
	other := newTraceTwin(t, "traces", twinBuild{flags: []string{"-O1", "-fno-inline"}, link: []string{"-no-pie"}})
	logs := make(map[string][]byte)
	for _, form := range slices.Concat(bareForms, fullForms, partForms) {
		logs[form] = w.output(t, nil, form)
		logs[form+" with maps"] = w.output(t, nil, form, "signal", "maps-before")
	}
	for _, file := range []string{"traces", "libledger.so"} {
		data, err := os.ReadFile(filepath.Join(other.dir, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(w.dir, file), data, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for form, log := range logs {
		frames := framesIn(t, w.text(t, log, "--output=json", "--debug-file-directory", other.debug, "--image", w.program, "--image", filepath.Join(w.dir, "libledger.so")))
		if len(frames) == 0 {
			t.Errorf("%s: no frames in\n%s", form, log)
		}
		for _, f := range frames {
			if filepath.Dir(f.Module) == w.dir && len(f.Frames) > 0 {
				t.Errorf("%s: another build answers %s", form, fmt.Sprintf("%+v", f))
			}
		}
	}
}

// placeIn returns an address in a function of the program, in hex.
func placeIn(t *testing.T, w *traceTwin, function string) string {
	t.Helper()
	for line := range strings.Lines(run(t, nil, "nm", filepath.Join(w.whole, filepath.Base(w.program)))) {
		if f := strings.Fields(line); len(f) == 3 && f[2] == function {
			return strings.TrimLeft(f[0], "0")
		}
	}
	t.Fatalf("no function %s", function)
	return ""
}
