//go:build linux

package integration

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The examples are built and run as their README describes. Their frames must be resolved to their
// own lines, with inlined calls: by the debug information at the module's own path or, after the
// program was moved, in --symbol-path.
func TestEmittersAreResolvedToTheirOwnLines(t *testing.T) {
	// a function, and a text that only one line of the source has
	type call struct{ Func, Text string }
	tests := []struct {
		compiler, source, program string
		optional                  bool
		want                      []call
	}{
		{"gcc", "c/emit.c", "emit-c", false, []call{
			{"print_backtrace", "_Unwind_Backtrace("},
			{"inlined", "void inlined(void) {"},
			{"work", "  inlined();"},
			{"main", "  work();"},
		}},
		{"go", "go/main.go", "emit-go", false, []call{
			{"main.printBacktrace", "runtime.Callers(1"},
			{"main.inlined", "func inlined() {"},
			{"main.work", "func work() {"},
			{"main.main", "func main() {"},
		}},
		{"rustc", "rust/emit.rs", "emit-rust", true, []call{
			{"emit::print_backtrace", "unsafe { _Unwind_Backtrace("},
			{"emit::inlined", "fn inlined() {"},
			{"emit::work", "    inlined();"},
			{"emit::main", "fn main() {"},
		}},
	}
	examples := filepath.Join("..", "examples", "emit")
	readme, err := os.ReadFile(filepath.Join(examples, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range tests {
		t.Run(tt.compiler, func(t *testing.T) {
			t.Parallel()
			// The compiler may be installed without a toolchain, as by rustup.
			if tt.optional {
				if out, err := exec.Command(tt.compiler, "--version").CombinedOutput(); err != nil {
					t.Skipf("%s --version: %v\n%s", tt.compiler, err, out)
				}
			}
			need(t, tt.compiler)
			source, err := os.ReadFile(filepath.Join(examples, tt.source))
			if err != nil {
				t.Fatal(err)
			}
			if n := bytes.Count(source, []byte("\n")); n >= 80 {
				t.Errorf("%s has %d lines, README promises less than 80", tt.source, n)
			}
			var want []place
			for _, c := range tt.want {
				want = append(want, place{c.Func, filepath.Base(tt.source), lineOf(t, source, c.Text)})
			}

			// README's command, in a new folder. The go command may use its build cache.
			line := regexp.MustCompile(`(?m)^` + tt.compiler + ` .*$`).FindString(string(readme))
			dir := t.TempDir()
			build := exec.Command("sh", "-c", strings.ReplaceAll(line, "/tmp/", dir+"/"))
			build.Dir = ".."
			build.Env = append(os.Environ(), "PATH="+filepath.Dir(command)+string(filepath.ListSeparator)+os.Getenv("PATH"), "GOFLAGS=-buildvcs=false")
			var stderr bytes.Buffer
			build.Stderr = &stderr
			shown, err := build.Output()
			if err != nil || stderr.Len() > 0 {
				t.Fatalf("%s: %v\n%s", line, err, stderr.Bytes())
			}
			if diff := cmp.Diff(want, ownFrames(t, string(shown), tt.program)); diff != "" {
				t.Errorf("source (-), by symfilter (+):\n%s\n%s", diff, shown)
			}

			// The program is moved before its log is read.
			log := run(t, nil, filepath.Join(dir, tt.program))
			moved := filepath.Join(dir, "symbols")
			if err := os.Mkdir(moved, 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(filepath.Join(dir, tt.program), filepath.Join(moved, "kept")); err != nil {
				t.Fatal(err)
			}
			if got := ownFrames(t, run(t, []byte(log), command), tt.program); len(got) > 0 {
				t.Errorf("without the program: %+v", got)
			}
			filtered := run(t, []byte(log), command, "--symbol-path", moved)
			if diff := cmp.Diff(want, ownFrames(t, filtered, tt.program)); diff != "" {
				t.Errorf("source (-), with --symbol-path (+):\n%s\n%s", diff, filtered)
			}
		})
	}
}

// lineOf returns the number of the only line of source with text.
func lineOf(t *testing.T, source []byte, text string) int {
	t.Helper()
	before, after, ok := strings.Cut(string(source), text)
	if !ok || strings.Contains(after, text) {
		t.Fatalf("%q has to stand once in the source", text)
	}
	return 1 + strings.Count(before, "\n")
}

var rustHash = regexp.MustCompile(`::h[0-9a-f]{16}$`)

// ownFrames returns the frames with a line in the program's own source, from frame 0 to main.
func ownFrames(t *testing.T, out, program string) []place {
	t.Helper()
	var all []place
	for _, f := range parseFrames(t, out) {
		if f.Line > 0 && filepath.Base(f.Module) == program && strings.Contains(f.File, "examples/emit/") {
			all = append(all, place{rustHash.ReplaceAllString(f.Func, ""), filepath.Base(f.File), f.Line})
		}
	}
	return all
}
