//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// The scoreboard in docs/compare.md must equal the results for testdata/backtraces. The columns of
// other tools are compared only with TEST_REAL=1.
func TestTheScoreboardIsTrue(t *testing.T) {
	tools := []string{"symfilter=" + command + ` -s "$KIT"`}
	if producers.real {
		testenv.Need(t, "asan_symbolize-19", "addr2line")
		tools = append(tools, "asan_symbolize=asan_symbolize-19 -d", "addr2line=testdata/backtraces/by-hand.sh")
	}
	cmd := exec.Command("go", append([]string{"run", "./scripts/scoreboard"}, tools...)...)
	cmd.Dir = checkout
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(checkout, "docs", "compare.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(out)) {
		want := strings.TrimSpace(line)
		if !strings.HasPrefix(want, "| ") || strings.HasPrefix(want, "| tool") || strings.HasPrefix(want, "| log") {
			continue
		}
		if rows++; !strings.Contains(string(page), "\n"+want) && !strings.Contains(string(page), "\n"+strings.TrimSuffix(want, " |")) {
			t.Errorf("docs/compare.md lacks this row, or one that begins so:\n%s", want)
		}
	}
	if rows < 30 {
		t.Errorf("%d rows in\n%s", rows, out)
	}
}
