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

// The forms of testdata/twin/traces.cc.
var (
	// These have addresses without modules.
	bareForms = []string{"glog", "absl", "folly", "rust", "stdtrace"}
	// These name the modules, and have numbers or names that show where they were loaded.
	fullForms = []string{"glog-paths", "pytorch", "backward", "cpptrace"}
	// These name some modules, or show the place of some.
	partForms = []string{"envoy", "seastar", "seastar-list", "boost"}
)

var (
	tracedCalls   = []string{"print", "leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	tracedSignal  = []string{"print", "handler", "fall", "dying-leaf", "visit", "settle", "close", "audit", "count", "run", "main"}
	programCalls  = []string{"print", "leaf", "count", "run", "main"}
	unnamedCalls  = []string{"print", "leaf", "visit", "settle", "count", "run", "main"} // frames that are named have no address
	unnamedSignal = []string{"print", "handler", "fall", "dying-leaf", "visit", "settle", "count", "run", "main"}
)

// tracedFrames returns the frames that are located in log, filtered.
func (w *traceTwin) tracedFrames(t *testing.T, log []byte, args ...string) (located []twinFrame) {
	t.Helper()
	for _, f := range w.frames(t, log, args...) {
		if len(f.Frames) > 0 {
			located = append(located, f)
		}
	}
	return located
}

// callsOf returns the marks of the calls that a trace of this form shows.
func callsOf(form string, all, unnamed []string) []string {
	switch form {
	case "rust", "boost":
		return unnamed
	}
	return all
}

// With the maps of the process, before or after the trace, every form is resolved, through a signal.
func TestTracesWithMapsAreResolved(t *testing.T) {
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "traces", twinBuild{link: link})
			for _, form := range slices.Concat(bareForms, []string{"boost", "envoy", "pytorch", "glog-paths"}) {
				log := w.output(t, nil, form, "signal", "maps-before")
				want := callsOf(form, tracedSignal, unnamedSignal)
				if form == "stdtrace" { // it subtracts from the address that the signal interrupted, too
					want = slices.DeleteFunc(slices.Clone(want), func(mark string) bool { return mark == "fall" })
				}
				w.wantChain(t, w.tracedFrames(t, log), want...)
			}
			w.wantChain(t, w.tracedFrames(t, w.output(t, nil, "glog", "maps-after")), tracedCalls...)
		})
	}
}

// A form that names its modules is resolved by itself.
func TestTracesWithModulesAreResolved(t *testing.T) {
	for name, link := range map[string][]string{"pie": {"-pie"}, "no-pie": {"-no-pie"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTraceTwin(t, "traces", twinBuild{link: link})
			for _, form := range fullForms {
				frames := w.tracedFrames(t, w.output(t, nil, form))
				if form == "backward" { // the newest call is the last one
					slices.Reverse(frames)
				}
				w.wantChain(t, frames, tracedCalls...)
			}
			w.wantChain(t, w.tracedFrames(t, w.output(t, nil, "envoy")), programCalls...)
			for _, form := range []string{"seastar", "seastar-list"} {
				log := w.output(t, nil, form)
				w.wantChain(t, w.tracedFrames(t, log), "visit", "settle", "close", "audit")
				w.wantChain(t, w.tracedFrames(t, log, "--image", w.program), tracedCalls...)
			}
		})
	}
}

// Addresses without modules are resolved in the files that --image names: a program at a fixed
// address, a file whose base is given, and a library whose exported functions are in the trace.
func TestAddressesWithoutModulesNeedImages(t *testing.T) {
	w := newTraceTwin(t, "traces", twinBuild{link: []string{"-no-pie"}})
	library := filepath.Join(w.dir, "libledger.so")
	for _, form := range bareForms {
		log := w.output(t, nil, form)
		if got := w.text(t, log); got != string(log) {
			t.Errorf("%s: without a base, the trace is\n%s", form, got)
		}
		w.wantChain(t, w.tracedFrames(t, log, "--image", w.program), programCalls...)
		if form != "rust" {
			w.wantChain(t, w.tracedFrames(t, log, "--image", w.program, "--image", library), tracedCalls...)
		}
	}
	w = newTraceTwin(t, "traces", twinBuild{link: []string{"-pie"}})
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
	if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), "/proc/self/maps") {
		t.Errorf("%v: --explain does not name what would help:\n%s", err, out)
	}
}

// A filtered trace is not filtered again.
func TestTracesAreResolvedOnce(t *testing.T) {
	w := newTraceTwin(t, "traces", twinBuild{})
	forms := strings.Join(slices.Concat(bareForms, fullForms, partForms), ",")
	log := w.output(t, nil, forms, "maps-before")
	once := w.text(t, log, "--image", w.program)
	if lines := strings.Count(once, "ledger.cc:"); lines < 30 {
		t.Fatalf("%d answers in\n%s", lines, once)
	}
	if twice := w.text(t, []byte(once), "--image", w.program); twice != once {
		t.Errorf("filtered twice:\n%s\nonce:\n%s", twice, once)
	}
}

// Files of another build answer nothing, whatever the trace has.
func TestTracesOfOtherBuildsStayRaw(t *testing.T) {
	w := newTraceTwin(t, "traces", twinBuild{link: []string{"-no-pie"}})
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
