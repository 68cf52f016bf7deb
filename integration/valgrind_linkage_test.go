//go:build linux

package integration

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// For a program that is not on this machine, printed suppressions must have the linkage names of
// the report's own suppressions. If the report has no suppressions, the printed ones must name
// object files instead of functions. With the printed suppressions, Valgrind must suppress all
// errors.
func TestSuppressionsOfAProgramElsewhereMakeValgrindQuiet(t *testing.T) {
	need(t, "valgrind", "g++")
	dir := t.TempDir()
	program := filepath.Join(dir, "prog")
	source := filepath.Join(checkout, "integration", "testdata", "valgrind", "elsewhere.cc")
	run(t, nil, "g++", "-gdwarf-4", "-O0", "-Wl,--build-id", "-o", program, source)
	valgrindOf := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("valgrind", append(append([]string{"--leak-check=full"}, args...), program)...)
		cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
		out, err := producers.combined(t, cmd)
		if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
			t.Fatalf("valgrind: %v\n%s", err, out)
		}
		return string(out)
	}
	if out := valgrindOf("-q"); strings.Count(out, "blocks are definitely lost") != 1 || !strings.Contains(out, "Conditional jump") {
		t.Fatalf("Valgrind finds\n%s", out)
	}
	const word = "# The report lacks linkage names of some functions"
	for _, test := range []struct {
		name, gen string
		lines     []string
		told      bool
	}{
		{"suppressions in the report", "--gen-suppressions=all", []string{"fun:_ZN2nn3BoxIiE3getEi", "fun:_ZN2nn3BoxIiEC?Ev"}, false},
		{"none in the report", "--gen-suppressions=no", []string{"obj:*/prog"}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			report, supp := filepath.Join(t.TempDir(), "report.xml"), filepath.Join(t.TempDir(), "named.supp")
			valgrindOf("--xml=yes", test.gen, "--xml-file="+report)
			away := program + ".away"
			if err := os.Rename(program, away); err != nil {
				t.Fatal(err)
			}
			printed := run(t, nil, command, "-q", "--output=suppressions", report)
			if err := os.WriteFile(supp, []byte(printed), 0o644); err != nil {
				t.Fatal(err)
			}
			unneeded := run(t, nil, command, "-q", "--supp-check="+supp, report)
			if err := os.Rename(away, program); err != nil {
				t.Fatal(err)
			}
			for _, line := range test.lines {
				if !strings.Contains(printed, "   "+line+"\n") {
					t.Errorf("no line %s", line)
				}
			}
			if strings.Contains(printed, "fun:nn::") || strings.Contains(printed, word) != test.told {
				t.Errorf("not Valgrind's names, or not told:\n%s", printed)
			}
			if out := valgrindOf("-q", "--suppressions="+supp); strings.Contains(out, "==") {
				t.Errorf("with\n%s\nValgrind prints\n%s", printed, out)
			}
			if unneeded != "" {
				t.Errorf("not needed: %s", unneeded)
			}
		})
	}
}
