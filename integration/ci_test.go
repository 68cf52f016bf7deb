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

	"github.com/google/go-cmp/cmp"
)

// ciBlocks returns the code blocks of docs/ci.md by the titles of their sections.
func ciBlocks(t *testing.T) map[string]string {
	t.Helper()
	blocks := make(map[string]string)
	for section := range strings.SplitSeq(readFile(t, filepath.Join("..", "docs", "ci.md")), "\n## ") {
		title, rest, _ := strings.Cut(section, "\n")
		if _, block, ok := strings.Cut(rest, "\n```"); ok {
			_, block, _ = strings.Cut(block, "\n") // the language
			blocks[title], _, _ = strings.Cut(block, "```")
		}
	}
	return blocks
}

// A ciProject is a folder with the Makefile of docs/ci.md and a stripped test program.
type ciProject struct {
	g   gated
	dir string
}

// sh runs a command in the project's folder, and returns its output and exit code.
func (p *ciProject) sh(t *testing.T, script string) (string, int) {
	t.Helper()
	cmd := exec.Command("sh", "-c", script)
	cmd.Dir = p.dir
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(command)+":"+os.Getenv("PATH"), "SYMFILTER_NO_DEFAULT_DEBUG_DIRECTORIES=true")
	out, err := cmd.CombinedOutput()
	code := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	return string(out), code
}

// use makes a program the only test of the project.
func (p *ciProject) use(t *testing.T, program string) {
	t.Helper()
	if out, code := p.sh(t, "rm -rf tests && mkdir tests && cp "+filepath.Join(p.g.dir, program)+" tests/test"); code != 0 {
		t.Fatal(out)
	}
}

// The commands of docs/ci.md for each build system run in a project. They must accept known
// findings, and fail for new ones after all files are complete.
func TestGatesOfBuildsAreAsDocumented(t *testing.T) {
	t.Parallel()
	need(t, "make")
	g, dir := gate(t)
	p := &ciProject{g, dir}
	blocks := ciBlocks(t)
	for _, title := range []string{"Makefile", "GitHub", "GitLab", "Jenkins", "CTest"} {
		if n := strings.Count(blocks[title], "\n"); n == 0 || n > 15 {
			t.Errorf("%s has %d lines, want 1 to 15", title, n)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "Makefile"), []byte(blocks["Makefile"]), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(g.debug, filepath.Join(dir, "debug")); err != nil {
		t.Fatal(err)
	}
	p.use(t, "old")
	if out, code := p.sh(t, "make valgrind"); code == 0 || !strings.Contains(out, "to make it from the current findings, add --baseline-update") {
		t.Errorf("without a baseline: exit code %d\n%s", code, out)
	}
	if out, code := p.sh(t, "make valgrind-accept"); code != 0 || !strings.Contains(out, "new 5, gone 0, same 0\n") {
		t.Errorf("make valgrind-accept: exit code %d\n%s", code, out)
	}
	p.use(t, "new")
	if out, code := p.sh(t, "make valgrind"); code != 0 || !strings.Contains(out, "new 0, gone 0, same 5\n") {
		t.Errorf("nothing is new: exit code %d\n%s", code, out)
	}
	p.use(t, "sixth")
	ran := 0
	for _, title := range []string{"GitHub", "GitLab", "Jenkins"} {
		made := regexp.MustCompile(`make valgrind OUTPUTS='[^']*'`).FindString(blocks[title])
		out, code := p.sh(t, made)
		if made == "" || code != 2 || !strings.Contains(out, "Error 4\n") || !strings.Contains(out, "new 1, gone 0, same 5\n") {
			t.Errorf("%s: %s: exit code %d\n%s", title, made, code, out)
			continue
		}
		for _, m := range regexp.MustCompile(`--output=(\w+):([\w.]+)`).FindAllStringSubmatch(made, -1) {
			ran++
			if text := readFile(t, filepath.Join(dir, m[2])); !strings.Contains(text, "MismatchedFree") {
				t.Errorf("%s: %s lacks what is new:\n%s", title, m[2], text)
			}
			if !strings.Contains(strings.Replace(blocks[title], made, "", 1), m[2]) {
				t.Errorf("%s does not use %s", title, m[2])
			}
			if err := os.Remove(filepath.Join(dir, m[2])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if ran != 5 {
		t.Errorf("%d files were made, want 5", ran)
	}
	found := regexp.MustCompile(`COMMAND (symfilter .*) \$\{reports\}`).FindStringSubmatch(blocks["CTest"])
	if len(found) != 2 {
		t.Fatalf("CTest has no command:\n%s", blocks["CTest"])
	}
	if out, code := p.sh(t, found[1]+" -s debug reports/*.xml"); code != 4 || !strings.Contains(out, "new 1, gone 0, same 5\n") {
		t.Errorf("CTest: exit code %d\n%s", code, out)
	}
}

func TestTheGateOfCTestIsAsDocumented(t *testing.T) {
	if !long() {
		t.Skip("it takes five seconds and needs cmake; TEST_LONG=1 runs it")
	}
	need(t, "ctest", "cmake", "make")
	g, dir := gate(t)
	p := &ciProject{g, dir}
	for name, text := range map[string]string{
		"gate.cmake":    ciBlocks(t)["CTest"],
		"five.cc":       readFile(t, filepath.Join("testdata", "valgrind", "five.cc")),
		"valgrind.base": "# symfilter baseline 1: valgrind\n",
		"CMakeLists.txt": "cmake_minimum_required(VERSION 3.19)\nproject(five CXX)\nenable_testing()\nadd_executable(five five.cc)\n" +
			"target_compile_options(five PRIVATE -g -O1)\nadd_test(NAME five COMMAND five)\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	changes := func(out string) string { return regexp.MustCompile(`new \d+, gone \d+, same \d+`).FindString(out) }
	var got []string
	for _, script := range []string{"ctest -S gate.cmake", "symfilter valgrind --baseline=valgrind.base --baseline-update build/reports/*.xml", "ctest -S gate.cmake"} {
		out, code := p.sh(t, script)
		got = append(got, changes(out)+map[bool]string{true: "", false: " fails"}[code == 0])
	}
	want := []string{"new 5, gone 0, same 0 fails", "new 5, gone 0, same 0", "new 0, gone 0, same 5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
