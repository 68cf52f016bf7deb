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
// output that README shows. Frames of libc have names if its debug package is installed.
func TestReadmeCommandsPrintTheGoldenFile(t *testing.T) {
	block := readmeBlock(t, "sh")
	const closing = "symfilter: 2 of 11 addresses stayed unresolved: libc.so.6 (2); "
	print := func(closing string, env ...string) string {
		t.Helper()
		cmd := exec.Command("sh", "-e", "-c", block)
		cmd.Dir = ".."
		cmd.Env = append(append(os.Environ(), "GOFLAGS=-buildvcs=false"), env...)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		got, err := cmd.Output()
		if said := stderr.String(); err != nil || !strings.HasPrefix(said, closing) || strings.Count(said, "\n") != strings.Count(closing, ";") {
			t.Fatalf("%s: %v; it prints to standard error, and not %q alone:\n%s", block, err, closing, said)
		}
		return string(got)
	}
	golden := filepath.Join("..", "testdata", "crash.golden")
	data, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := string(data)
	if diff := cmp.Diff(want, print(closing, noSystemDebug)); diff != "" {
		t.Errorf("without the system's debug files: %s (-), printed (+):\n%s", golden, diff)
	}
	const libc = "/usr/lib/debug/.build-id/93/ac61ec5a8eb1396f9fbd350e3169a558528a40.debug"
	_, err = os.Stat(libc)
	var got string
	if err != nil {
		got = print(closing)
	} else {
		got = print("")
		const bare, named = "(libc.so.6+0x27249) (BuildId: 93ac61ec5a8eb1396f9fbd350e3169a558528a40)", "__libc_start_call_main "
		if strings.Contains(got, bare) || strings.Count(got, named) != strings.Count(want, bare) {
			t.Errorf("%s is not used:\n%s", libc, got)
		}
		want, got = withoutLibc(want), withoutLibc(got)
	}
	if diff := cmp.Diff(want, got); diff != "" {
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
		if all := []string{string(log), string(data)}[min(shown, 1)]; !strings.Contains(stripColours(all), block) {
			t.Errorf("README.md shows what is not there:\n%s", block)
		}
		_, rest, found = strings.Cut(rest, "```text\n")
	}
	if shown != 2 {
		t.Errorf("README.md shows %d pieces of output, want what was before and after", shown)
	}
}

// withoutLibc returns the lines of out that are not frames of libc.
func withoutLibc(out string) string {
	var kept strings.Builder
	for line := range strings.Lines(out) {
		if !strings.Contains(line, "(libc.so.6+") {
			kept.WriteString(line)
		}
	}
	return kept.String()
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
