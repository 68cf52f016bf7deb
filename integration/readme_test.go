//go:build linux

package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The first block of commands in README.md runs unchanged, from the root of a clone, and prints the
// output that README shows.
func TestReadmeCommandsPrintTheGoldenFile(t *testing.T) {
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	readme, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(readme), "```sh\n")
	block, _, closed := strings.Cut(block, "```")
	if !found || !closed {
		t.Fatal("README.md has no block of commands")
	}
	cmd := exec.Command("sh", "-e", "-c", block)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	got, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s: %v\n%s", block, err, stderr.Bytes())
	}
	golden := filepath.Join(root, "testdata", "crash.golden")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-), printed (+):\n%s", golden, diff)
	}

	// What README shows, before and after, are pieces of the log and of the golden file.
	log, err := os.ReadFile(filepath.Join(root, "testdata", "crash.log"))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for rest := string(readme); ; shown++ {
		var block string
		if _, rest, found = strings.Cut(rest, "```text\n"); !found {
			break
		}
		block, rest, _ = strings.Cut(rest, "```")
		if all := []string{string(log), string(want)}[min(shown, 1)]; !strings.Contains(stripColours(all), block) {
			t.Errorf("README.md shows what is not there:\n%s", block)
		}
	}
	if shown != 2 {
		t.Errorf("README.md shows %d pieces of output, want what was before and after", shown)
	}
}

func stripColours(s string) string {
	for _, seq := range []string{"\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
		s = strings.ReplaceAll(s, seq, "")
	}
	return s
}
