//go:build linux

package integration

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The suppressions printed for the report of a stripped program must suppress all errors of its
// unstripped twin. The suppressions in comments must suppress all errors of the stripped program.
// --supp-check must report no printed suppression as unneeded, even for a report that Valgrind
// wrote with these suppressions.
func TestPrintedSuppressionsMakeValgrindQuiet(t *testing.T) {
	need(t, "valgrind", "g++", "clang-19", "strip")
	for _, test := range []struct {
		name   string
		build  []string
		source string
		tool   []string
		args   []string
		errors int // at least this many
		long   bool
	}{
		{name: "O2", build: with(gxx, "-O2"), source: "errors.cc", tool: []string{"--leak-check=full"}, errors: 5},
		{name: "O0", build: with(gxx, "-O0"), source: "errors.cc", tool: []string{"--leak-check=full"}, errors: 5, long: true},
		{name: "O3", build: with(gxx, "-O3"), source: "errors.cc", tool: []string{"--leak-check=full"}, errors: 5, long: true},
		{name: "clang", build: []string{"clang++-19", "-gdwarf-4", "-O1"}, source: "errors.cc", tool: []string{"--leak-check=full"}, errors: 5, long: true},
		{name: "c", build: with(gcc, "-O2"), source: "mem.c", tool: []string{"--leak-check=full", "--show-leak-kinds=all"}, args: []string{"rRlupd"}, errors: 5, long: true},
	} {
		if test.long && !long() {
			continue
		}
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			full, bare := filepath.Join(dir, "full", "prog"), filepath.Join(dir, "bare", "prog")
			for _, name := range []string{full, bare} {
				if err := os.Mkdir(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			source := filepath.Join(checkout, "integration", "testdata", "valgrind", test.source)
			run(t, nil, test.build[0], append(with(test.build[1:]), "-Wl,--build-id", "-o", full, source)...)
			run(t, nil, "strip", "-o", bare, full)
			valgrindOf := func(program string, more ...string) string {
				t.Helper()
				args := with(test.tool)
				cmd := exec.Command("valgrind", append(append(append(args, more...), program), test.args...)...)
				cmd.Env = append(os.Environ(), "DEBUGINFOD_URLS=")
				out, err := producers.combined(t, cmd)
				if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
					t.Fatalf("valgrind: %v\n%s", err, out)
				}
				return string(out)
			}
			report, named, objects := filepath.Join(dir, "report.xml"), filepath.Join(dir, "named.supp"), filepath.Join(dir, "objects.supp")
			valgrindOf(bare, "--xml=yes", "--xml-file="+report)
			printed := run(t, nil, command, "-q", "--output=suppressions", "-s", full, report)
			if n := strings.Count(printed, "\n{\n"); n < test.errors {
				t.Errorf("%d suppressions, want %d:\n%s", n, test.errors, printed)
			}
			comments := strings.Join(regexp.MustCompile(`(?m)^# [{} ].*$`).FindAllString(printed, -1), "\n")
			for name, content := range map[string]string{named: printed, objects: regexp.MustCompile(`(?m)^# `).ReplaceAllString(comments, "") + "\n"} {
				if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			if out := valgrindOf(full, "-q", "--suppressions="+named); strings.Contains(out, "==") {
				t.Errorf("with\n%s\nValgrind prints\n%s", printed, out)
			}
			if test.errors > 0 {
				if out := valgrindOf(bare, "-q", "--suppressions="+objects); strings.Contains(out, "==") {
					t.Errorf("with\n%s\nValgrind prints of the stripped program\n%s", comments, out)
				}
			}
			if out := run(t, nil, command, "-q", "--supp-check="+named, "-s", full, report); out != "" {
				t.Errorf("not needed: %s", out)
			}
			used := filepath.Join(dir, "used.xml")
			valgrindOf(full, "--suppressions="+named, "--xml=yes", "--xml-file="+used)
			if out := run(t, nil, command, "-q", "--supp-check="+named, used); out != "" {
				t.Errorf("used, but not needed: %s", out)
			}
		})
	}
}
