package housetest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// A mutation is a change of a file that removes the guard against a threat.
type mutation struct {
	threat         int
	pkg, test      string // test is the argument of go test -run, without anchors
	file, old, new string // old occurs once in file
}

// For each threat in SECURITY.md, testdata/guards.txt must have a guard and a test that fails
// without the guard. The short form checks that the guards are still in their files, and runs only
// the tests of internal/escape, which compile quickly. The command "make guards" runs the tests of
// all guards.
func TestGuardsAreTested(t *testing.T) {
	threats, mutations := threatRows(t), readMutations(t)
	for i, row := range threats {
		if !slices.ContainsFunc(mutations, func(m mutation) bool { return m.threat == i+1 }) {
			t.Errorf("threat %d (%s) has no guard in testdata/guards.txt", i+1, row.threat)
		}
	}
	for _, m := range mutations {
		t.Run(fmt.Sprintf("%d/%s", m.threat, m.test), func(t *testing.T) {
			if m.threat < 1 || m.threat > len(threats) {
				t.Fatalf("there is no threat %d", m.threat)
			}
			test, script, _ := strings.Cut(m.test, "/")
			if row := threats[m.threat-1].tests; !strings.Contains(row, "`"+test+"`") && !strings.Contains(row, "["+script+"]") {
				t.Errorf("threat %d of SECURITY.md does not name %s", m.threat, m.test)
			}
			text := string(read(t, m.file))
			if n := strings.Count(text, m.old); n != 1 {
				t.Fatalf("%s has the guard %d times, want once:\n%s", m.file, n, m.old)
			}
			if m.pkg == "./internal/escape" || fuzztest.Long() {
				m.run(t, strings.Replace(text, m.old, m.new, 1))
			}
		})
	}
}

// failed matches the output of a failed test or a crashed process.
var failed = regexp.MustCompile(`(?m)^\s*--- FAIL|^panic: |^fatal error: `)

// run replaces the text of m's file by text, and checks that m's test then fails.
func (m mutation) run(t *testing.T, text string) {
	dir, env := root(t), os.Environ()
	if filepath.Ext(m.file) == ".go" {
		// the overlay also applies to commands that the test builds
		env = append(env, "GOFLAGS="+os.Getenv("GOFLAGS")+" '-overlay="+overlay(t, filepath.Join(dir, m.file), text)+"'")
	} else {
		dir = copyOfTree(t)
		write(t, filepath.Join(dir, m.file), text)
	}
	cmd := exec.Command("go", "test", "-vet=off", "-count=1", "-timeout=10m", "-run=^"+strings.ReplaceAll(m.test, "/", "$/^")+"$", m.pkg)
	cmd.Dir, cmd.Env = dir, append(env, "TEST_LONG=", "CI=") // without CI, a test without its programs is skipped, and has not failed
	out, err := cmd.CombinedOutput()
	switch {
	case err == nil:
		t.Errorf("it passes without the guard:\n%s", out)
	case !failed.Match(out):
		t.Errorf("it did not run: %v\n%s", err, out)
	}
}

// overlay returns the argument of go's -overlay that replaces file by text.
func overlay(t *testing.T, file, text string) string {
	dir := t.TempDir()
	mutated, config := filepath.Join(dir, filepath.Base(file)), filepath.Join(dir, "overlay.json")
	write(t, mutated, text)
	data, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	write(t, config, string(data))
	return config
}

func copyOfTree(t *testing.T) string {
	dir := t.TempDir()
	for _, name := range committed(t) {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		write(t, filepath.Join(dir, name), string(read(t, name)))
	}
	return dir
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// readMutations reads testdata/guards.txt. Lines that begin with # are comments.
func readMutations(t *testing.T) (all []mutation) {
	text := string(read(t, "internal/housetest/testdata/guards.txt"))
	for block := range strings.SplitSeq(strings.TrimSpace(text), "\n\n") {
		if strings.HasPrefix(block, "#") {
			continue
		}
		head, lines, _ := strings.Cut(block, "\n")
		var m mutation
		if n, err := fmt.Sscan(head, &m.threat, &m.pkg, &m.test, &m.file); n != 4 {
			t.Fatalf("%q: %v", head, err)
		}
		for line := range strings.Lines(lines + "\n") {
			switch line[0] {
			case '-':
				m.old += line[1:]
			case '+':
				m.new += line[1:]
			case ' ':
				m.old += line[1:]
				m.new += line[1:]
			default:
				t.Fatalf("%s: %q begins with neither -, + nor a blank", head, line)
			}
		}
		all = append(all, m)
	}
	return all
}
