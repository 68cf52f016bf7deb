//go:build linux

package integration

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// symfilter's summaries must have Valgrind's numbers, although reports before protocol 6 have no
// summaries.
func TestSummariesOfReportsAreValgrinds(t *testing.T) {
	need(t, "valgrind", "gcc")
	dir := t.TempDir()
	program := filepath.Join(dir, "leaks")
	run(t, nil, "gcc", "-g", "-O0", "-o", program, filepath.Join("testdata", "valgrind", "leaks.c"))
	suppression := filepath.Join(dir, "suppression")
	if err := os.WriteFile(suppression, []byte("{\n   freed\n   Memcheck:Addr4\n   fun:main\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, flags := range map[string][]string{
		"as usual":           nil,
		"all kinds of leaks": {"--show-leak-kinds=all", "--errors-for-leak-kinds=all"},
		"suppressed":         {"--suppressions=" + suppression, "--errors-for-leak-kinds=none"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			log, xml := filepath.Join(t.TempDir(), "log"), filepath.Join(t.TempDir(), "xml")
			flags = append(flags, "--leak-check=full")
			run(t, nil, "valgrind", append(flags, "--log-file="+log, program)...)
			run(t, nil, "valgrind", append(flags, "--xml=yes", "--xml-file="+xml, program)...)
			want := summaryLines(regexp.MustCompile(`(?m)^==\d+== ?`).ReplaceAllString(readFile(t, log), ""))
			got := summaryLines(run(t, nil, command, "--no-debuginfod", xml))
			if len(want) != 6 {
				t.Fatalf("got %d lines of Valgrind, want 6: %q", len(want), want)
			}
			for kind, amount := range want {
				if got[kind] == "" {
					delete(want, kind) // the report does not list leaks of this kind
				} else if !strings.Contains(got[kind], " in ") && kind == "indirectly lost" {
					want[kind], _, _ = strings.Cut(amount, " in ")
				}
			}
			if diff := cmp.Diff(want, got); diff != "" || len(got) < 3 {
				t.Errorf("summaries (-Valgrind, +symfilter):\n%s", diff)
			}
		})
	}
}

// summaryLine matches a line of a LEAK SUMMARY or an ERROR SUMMARY.
var summaryLine = regexp.MustCompile(`(?m)^ *(ERROR SUMMARY|\w+ lost|still reachable|suppressed): (.*)$`)

func summaryLines(text string) map[string]string {
	all := make(map[string]string)
	for _, m := range summaryLine.FindAllStringSubmatch(text, -1) {
		all[m[1]] = m[2]
	}
	return all
}
