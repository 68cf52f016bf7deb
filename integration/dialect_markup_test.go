//go:build linux

package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMarkupOfRealBacktracesHasTheirAnswers(t *testing.T) {
	t.Run("glibc", func(t *testing.T) {
		w := newTraceTwin(t, "backtrace", twinBuild{})
		for _, form := range [][]string{nil, {"signal"}} {
			log := string(w.output(t, nil, form...))
			wantSameAnswers(t, log, w.text(t, []byte(log), "--output=markup"), w.debug)
		}
	})
	t.Run("sanitizer", func(t *testing.T) {
		need(t, "clang-19", "g++", "strip", "setarch")
		need(t, sanitizerRuntime(t))
		s := newSanitized(t, "clang-19", "uaf.cc", []string{"-O1", "-fsanitize=address"})
		s.strip(t)
		log := s.report(t, false)
		wantSameAnswers(t, log, s.filtered(t, log, "--output=markup"), s.debug)
	})
}

// wantSameAnswers fails the test unless log and its markup give the same functions, files and
// lines.
func wantSameAnswers(t *testing.T, log, markup, debug string) {
	t.Helper()
	if !strings.Contains(markup, "{{{mmap:") {
		t.Errorf("no markup is made:\n%s", markup)
	}
	var all [2][]string
	for i, text := range []string{log, markup} {
		out := run(t, []byte(text), command, "--output=json", "--debug-file-directory", debug)
		for line := range strings.Lines(out) {
			var object struct{ Elements []twinFrame }
			if err := json.Unmarshal([]byte(line), &object); err != nil {
				t.Fatalf("%v: %s", err, line)
			}
			for _, e := range object.Elements {
				for _, f := range e.Frames {
					all[i] = append(all[i], fmt.Sprintf("%s %s:%d", f.Function, f.File, f.Line))
				}
			}
		}
	}
	if diff := cmp.Diff(all[0], all[1]); diff != "" || len(all[0]) < 5 {
		t.Errorf("%d answers; the log (-), its markup (+):\n%s\n%s", len(all[0]), diff, markup)
	}
}
