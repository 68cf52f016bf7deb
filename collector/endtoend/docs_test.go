//go:build linux

package endtoend

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/walkthrough"
)

// The commands in docs/start/collector.md must work for a reader who has a fresh clone and an empty
// home. TestMain has built the Collector. The other commands need only the repository's testdata.
func TestThePageOfTheCollectorWorksAsWritten(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join(checkout, "docs", "start", "collector.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := walkthrough.Blocks(string(page))
	if err != nil {
		t.Fatal(err)
	}
	const build = "(cd collector/dist && go build -o ../../otelcol-symfilter .)\n"
	if len(blocks) == 0 || !strings.Contains(blocks[0].Text, build) {
		t.Fatalf("the page does not begin with %s", build)
	}
	blocks[0].Text = strings.Replace(blocks[0].Text, build, "", 1)
	clone := filepath.Join(t.TempDir(), "a folder with blanks", "symfilter")
	if err := os.MkdirAll(clone, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"otelcol-symfilter": otelcol, "testdata": filepath.Join(checkout, "testdata")} {
		if err := os.Symlink(target, filepath.Join(clone, name)); err != nil {
			t.Fatal(err)
		}
	}
	walkthrough.Run(t, walkthrough.Place{Dir: clone, Home: t.TempDir(), Env: []string{"PATH=" + os.Getenv("PATH")}}, blocks)
}
