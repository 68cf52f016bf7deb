//go:build linux

package integration

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// printedBy lists the programs whose forms testdata/twin/emit.cc prints, with the arguments that
// their users must give.
var printedBy = []struct {
	form, build string
	args        func(w *traceTwin) []string
}{
	{"haproxy", "pie", asProgram("haproxy")},
	{"bpftrace", "pie", asLibraries},
	{"bcc", "pie", asLibraries},
	{"cuda", "pie", nil},
	{"cuda", "lld", nil},
	{"cuda-line", "pie", asLibraries},
	{"abrt", "pie", nil},
	{"abrt", "lld", nil},
	{"abrt-line", "pie", nil},
	{"abrt-line", "no-pie", nil},
	{"coredump-243", "pie", nil},
}

// asProgram returns arguments that name the program and its library, for a dialect that prints the
// program as name.
func asProgram(name string) func(w *traceTwin) []string {
	return func(w *traceTwin) []string {
		return []string{"--image", name + "=" + w.program, "--image", "libledger=" + w.dir + "/libledger.so"}
	}
}

func asLibraries(w *traceTwin) []string {
	libc, _ := filepath.Glob("/lib/*/libc.so.6")
	return append([]string{"--image", w.program, "--image", w.dir + "/libledger.so"}, "--image", strings.Join(libc, ""))
}

// Traces of tools must be resolved: in a function, and in a signal handler after a fault.
func TestTracesOfToolsAreResolved(t *testing.T) {
	for _, p := range printedBy {
		t.Run(p.form+" "+p.build, func(t *testing.T) {
			t.Parallel()
			w := emitter(t, p.build)
			var args []string
			if p.args != nil {
				args = p.args(w)
			}
			for _, calls := range [][]string{emittedCalls, signalledCalls} {
				how := []string{p.form}
				if len(calls) == len(signalledCalls) {
					how = append(how, "signal")
				}
				log := w.output(t, nil, how...)
				frames := w.frames(t, log, args...)
				w.wantChain(t, frames, calls...)
				w.wantSame(t, log, args...)
			}
		})
	}
}

func TestOtherBuildsAnswerNothingToTools(t *testing.T) {
	t.Parallel()
	w, other := emitter(t, "pie"), emitter(t, "lld")
	for _, p := range printedBy {
		if p.build != "pie" {
			continue
		}
		var args []string
		if p.args != nil {
			args = p.args(other)
		}
		w.answersNothing(t, w.output(t, nil, p.form, "signal"), other, args...)
	}
}

// The answers must be additional members of the frames' objects. Nothing else may change.
func TestTracesOfABRTStayJSON(t *testing.T) {
	t.Parallel()
	w := emitter(t, "pie")
	for _, form := range []string{"abrt", "abrt-line"} {
		log := w.output(t, nil, form, "signal")
		var before, after any
		if err := json.Unmarshal(log, &before); err != nil {
			t.Fatal(err)
		}
		text := w.text(t, log)
		if err := json.Unmarshal([]byte(text), &after); err != nil {
			t.Fatalf("%v:\n%s", err, text)
		}
		var calls []string
		for _, f := range abrtFrames(after) {
			delete(f, "function_name")
			source, ok := f["source_file"].(string)
			if !ok {
				continue
			}
			if strings.HasPrefix(source, checkout) {
				others := func(member string) {
					list, _ := f[member].([]any)
					for _, call := range list {
						calls = append(calls, call.(string)[strings.LastIndexByte(call.(string), '/')+1:])
					}
				}
				others("inlined")
				calls = append(calls, fmt.Sprintf("%s:%v", filepath.Base(source), f["source_line"]))
				others("inlined_by")
			}
			for _, member := range []string{"source_file", "source_line", "inlined_by", "inlined"} {
				delete(f, member)
			}
		}
		if diff := cmp.Diff(w.chain(t, signalledCalls...), calls); diff != "" {
			t.Errorf("%s: the calls (-), the members (+):\n%s", form, diff)
		}
		for _, f := range abrtFrames(before) {
			delete(f, "function_name")
		}
		if diff := cmp.Diff(before, after); diff != "" {
			t.Errorf("%s: before (-), after (+):\n%s", form, diff)
		}
	}
}

func abrtFrames(backtrace any) (all []map[string]any) {
	for _, thread := range backtrace.(map[string]any)["stacktrace"].([]any) {
		for _, frame := range thread.(map[string]any)["frames"].([]any) {
			all = append(all, frame.(map[string]any))
		}
	}
	return all
}
