//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The first block of commands in README.md runs as it stands, from the root of a clone, and prints what is shown.
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
	got, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", block, err)
	}
	golden := filepath.Join(root, "testdata", "crash.golden")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s (-), printed (+):\n%s", golden, diff)
	}

	// The output that README shows is the end of it.
	_, rest, _ := strings.Cut(string(readme), block)
	if _, shown, found := strings.Cut(rest, "```text\n"); !found {
		t.Error("README.md shows no output")
	} else if shown, _, _ = strings.Cut(shown, "```"); !strings.Contains(stripColours(string(want)), shown) {
		t.Errorf("README.md shows what the command does not print:\n%s", shown)
	}
}

func stripColours(s string) string {
	for _, seq := range []string{"\x1b[0m", "\x1b[1m", "\x1b[31m", "\x1b[32m", "\x1b[33m"} {
		s = strings.ReplaceAll(s, seq, "")
	}
	return s
}
