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
	block := readmeBlock(t, "sh")
	cmd := exec.Command("sh", "-e", "-c", block)
	cmd.Dir = ".."
	cmd.Env = append(os.Environ(), "GOFLAGS=-buildvcs=false")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	got, err := cmd.Output()
	if err != nil || stderr.Len() > 0 {
		t.Fatalf("%s: %v\n%s", block, err, stderr.Bytes())
	}
	golden := filepath.Join("..", "testdata", "crash.golden")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-), printed (+):\n%s", golden, diff)
	}

	// The excerpts before and after in README are parts of the log and of the golden file.
	log, err := os.ReadFile(filepath.Join("..", "testdata", "crash.log"))
	if err != nil {
		t.Fatal(err)
	}
	shown := 0
	for _, rest, found := strings.Cut(readme(t), "```text\n"); found; shown++ {
		var block string
		block, rest, _ = strings.Cut(rest, "```")
		if all := []string{string(log), string(want)}[min(shown, 1)]; !strings.Contains(stripColours(all), block) {
			t.Errorf("README.md shows what is not there:\n%s", block)
		}
		_, rest, found = strings.Cut(rest, "```text\n")
	}
	if shown != 2 {
		t.Errorf("README.md shows %d pieces of output, want what was before and after", shown)
	}
}

func readme(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// readmeBlock returns the first block of README.md in a language.
func readmeBlock(t *testing.T, language string) string {
	t.Helper()
	_, block, found := strings.Cut(readme(t), "```"+language+"\n")
	block, _, closed := strings.Cut(block, "```\n")
	if !found || !closed {
		t.Fatalf("README.md has no block of %s", language)
	}
	return block
}

func stripColours(s string) string {
	for _, seq := range []string{"\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
		s = strings.ReplaceAll(s, seq, "")
	}
	return s
}
