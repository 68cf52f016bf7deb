//go:build linux

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// findingsOf returns the findings of a log in Code Quality: rule, fingerprint and place.
func (s *sanitized) findingsOf(t *testing.T, log string) (all []string) {
	t.Helper()
	var issues []struct {
		Check       string `json:"check_name"`
		Description string
		Fingerprint string
		Location    struct {
			Path  string
			Lines struct{ Begin int }
		}
	}
	out := run(t, []byte(log), command, "--debug-file-directory", s.debug, "--output=codequality")
	if err := json.Unmarshal([]byte(out), &issues); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, x := range issues {
		all = append(all, fmt.Sprintf("%s %s %s:%d", x.Check, x.Fingerprint, filepath.Base(x.Location.Path), x.Location.Lines.Begin))
	}
	return all
}

// The report of a stripped program must have the same findings as its report with the sanitizer's
// names. This must hold at each optimization level, with moved lines, as markup, and in other logs.
// Reports of both compilers with equal frames must have one fingerprint.
func TestFindingsOfStrippedProgramsAreThoseOfSymbolizedOnes(t *testing.T) {
	need(t, "clang-19", "llvm-symbolizer-19", "g++", "strip", "setarch")
	need(t, sanitizerRuntime(t))
	moved, err := filepath.Rel(filepath.Join(checkout, "integration", "testdata"), filepath.Join(t.TempDir(), "moved.cc"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join("testdata", "uaf.cc"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(checkout, "integration", "testdata", moved), append([]byte("// moved\n// moved\n"), text...), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, sanitizer string
		want            string     // rule and place of each finding
		builds          [][]string // all have one fingerprint; the last builds need TEST_LONG
		short           int        // number of builds without TEST_LONG
	}{
		{"use-after-free", "address", "asan/heap-use-after-free uaf.cc:11", [][]string{
			{"clang-19", "-O2", "uaf.cc"}, {"clang-19", "-O1", "uaf.cc"}, {"clang-19", "-O0", "uaf.cc"},
		}, 1},
		{"use-after-free of GCC", "address", "asan/heap-use-after-free uaf.cc:11", [][]string{
			{"g++", "-O1", "uaf.cc"}, {"g++", "-O1", moved}, {"g++", "-O2", "uaf.cc"}, {"g++", "-O0", "uaf.cc"},
		}, 2},
		{"signal", "address", "asan/SEGV segv.cc:14", [][]string{{"clang-19", "-O1", "segv.cc"}, {"clang-19", "-O2", "segv.cc"}}, 0},
		{"leak", "leak", "lsan/direct-leak leak.cc:6", [][]string{{"clang-19", "-O1", "sanitizer/leak.cc"}, {"clang-19", "-O0", "sanitizer/leak.cc"}}, 1},
		{"undefined", "undefined", "ubsan/signed-integer-overflow undefined.cc:6", [][]string{
			{"g++", "-O1", "sanitizer/undefined.cc"}, {"clang-19", "-O1", "sanitizer/undefined.cc"}, {"clang-19", "-O0", "sanitizer/undefined.cc"},
		}, 2},
		{"race", "thread", "tsan/data-race race.cc:9", [][]string{{"clang-19", "-O1", "sanitizer/race.cc"}, {"clang-19", "-O2", "sanitizer/race.cc"}}, 1},
		{"uninitialized", "memory", "msan/use-of-uninitialized-value uninitialized.cc:13", [][]string{{"clang-19", "-O1", "sanitizer/uninitialized.cc"}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			builds := c.builds
			if !long() {
				builds = builds[:c.short]
			}
			prints := make(map[string]string)
			for _, b := range builds {
				s := newSanitized(t, b[0], b[2], []string{b[1], "-fsanitize=" + c.sanitizer})
				online := aProcess(s.report(t, true))
				s.strip(t)
				offline := aProcess(s.report(t, false))
				got := s.findingsOf(t, offline)
				if diff := cmp.Diff(s.findingsOf(t, online), got); diff != "" || len(got) == 0 {
					t.Fatalf("%v: online (-), stripped (+):\n%s\n%s\n%s", b, diff, online, offline)
				}
				forms := map[string]string{
					"in a log of CRI":     regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSuffix(offline, "\n"), "2096-11-20T10:00:00.000000000Z stderr F ") + "\n",
					"in the system's log": regexp.MustCompile(`(?m)^`).ReplaceAllString(strings.TrimSuffix(offline, "\n"), "Nov 20 10:00:00 host shop[7]: ") + "\n",
					"in a log of Docker":  dockerLog(t, offline),
				}
				if c.sanitizer == "address" && b[0] == "clang-19" {
					forms["as markup"] = string(crash(t, s.dir, []string{"ASAN_OPTIONS=enable_symbolizer_markup=1"}, s.program))
				}
				for form, log := range forms {
					if diff := cmp.Diff(got, s.findingsOf(t, log)); diff != "" {
						t.Errorf("%v: the report (-), %s (+):\n%s\n%s", b, form, diff, log)
					}
				}
				for _, found := range got {
					fields := strings.Fields(found)
					if place := fields[0] + " " + strings.Replace(fields[2], "moved.cc:13", "uaf.cc:11", 1); place != c.want {
						t.Errorf("%v: found %s, want %s", b, place, c.want)
					}
				}
				prints[strings.Fields(got[0])[1]] = strings.Join(b, " ")
			}
			if len(prints) > 1 {
				t.Errorf("builds have different fingerprints: %v", prints)
			}
		})
	}
}

func dockerLog(t *testing.T, log string) string {
	t.Helper()
	var b strings.Builder
	for line := range strings.Lines(log) {
		object, err := json.Marshal(map[string]string{"log": line, "stream": "stderr", "time": "2096-11-20T10:00:00Z"})
		if err != nil {
			t.Fatal(err)
		}
		b.Write(append(object, '\n'))
	}
	return b.String()
}

// aProcess adds a process ID to a report, which [sanitized.report] has removed.
func aProcess(report string) string {
	report = strings.ReplaceAll(report, "race (a run)", "race (pid=7)")
	return strings.ReplaceAll(report, "(a run)", "==7==")
}
