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
	const closing = "symfilter: 6 of 22 addresses stayed unresolved: libc.so.6 (4), libclang_rt.asan-x86_64.so (2); "
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
	read := func(name string) string {
		t.Helper()
		data, err := os.ReadFile(filepath.Join("..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	want := read("asan.golden") + read("crash.golden")
	if diff := cmp.Diff(want, print(closing, noSystemDebug, "SYMFILTER_NO_PATHS=true")); diff != "" {
		t.Errorf("without the files of this system: testdata/*.golden (-), printed (+):\n%s", diff)
	}
	const libc = "/usr/lib/debug/.build-id/93/ac61ec5a8eb1396f9fbd350e3169a558528a40.debug"
	if _, err := os.Stat(libc); err == nil {
		got := print("", "SYMFILTER_QUIET=true")
		const bare, named = "(libc.so.6+0x27249) (BuildId: 93ac61ec5a8eb1396f9fbd350e3169a558528a40)", "__libc_start_call_main "
		if strings.Contains(got, bare) || strings.Count(got, named) != strings.Count(want, "libc.so.6+0x27249") {
			t.Errorf("%s is not used:\n%s", libc, got)
		}
	}

	// The excerpts before and after in README are parts of the log and of the golden file.
	shown := 0
	for _, rest, found := strings.Cut(readme(t), "```text\n"); found; shown++ {
		var block string
		block, rest, _ = strings.Cut(rest, "```")
		if all := read([]string{"asan.log", "asan.golden"}[min(shown, 1)]); !strings.Contains(all, block) {
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
