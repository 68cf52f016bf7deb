package housetest

import (
	"go/ast"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/testenv"
)

// runScript returns the output of a program run in dir, with additional variables in env.
func runScript(t *testing.T, dir string, env []string, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return string(out)
}

func writeFile(t *testing.T, name, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// The OSS-Fuzz build script must compile each fuzz target. The test replaces the compile command of
// OSS-Fuzz's image by a command that records its arguments. In the long form, that command also
// vets each package with OSS-Fuzz's build tag, which type-checks the targets.
func TestOSSFuzzBuildsEachTarget(t *testing.T) {
	testenv.Need(t, "bash")
	testenv.OnlyOn(t, "linux")
	const module = "github.com/symfilter/symfilter"
	var want []string
	parseGo(t, func(name string, f *ast.File) {
		pkg := path.Dir(name)
		for _, d := range f.Decls {
			fn, ok := d.(*ast.FuncDecl)
			if !ok || fn.Recv != nil || !strings.HasSuffix(name, "_test.go") || !strings.HasPrefix(fn.Name.Name, "Fuzz") {
				continue
			}
			want = append(want, strings.Join([]string{path.Join(module, pkg), fn.Name.Name, strings.ReplaceAll(pkg, "/", "_") + "_" + fn.Name.Name}, " "))
		}
	})
	slices.Sort(want)
	work := t.TempDir()
	compiled := ""
	if fuzztest.Long() {
		compiled = "go vet -tags gofuzz \"$1\"\n"
	}
	writeFile(t, filepath.Join(work, "bin", "compile_native_go_fuzzer_v2"), "#!/bin/sh -e\n"+compiled+"echo \"$1 $2 $3\"\n", 0o755)
	if err := os.Symlink(root(t), filepath.Join(work, "symfilter")); err != nil {
		t.Fatal(err)
	}
	out := runScript(t, work, []string{"SRC=" + work, "PATH=" + filepath.Join(work, "bin") + ":" + os.Getenv("PATH")},
		filepath.Join(root(t), "scripts", "oss-fuzz", "build.sh"))
	out = regexp.MustCompile(`(?m)^go: downloading .*\n`).ReplaceAllString(out, "") // printed if the module cache is empty
	got := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || len(want) < 70 {
		t.Errorf("%d targets: %s", len(want), diff)
	}
	names := make(map[string]bool)
	for _, line := range got {
		names[line[strings.LastIndex(line, " "):]] = true
	}
	if len(names) != len(got) {
		t.Errorf("%d targets have %d names", len(got), len(names))
	}
}

// scripts/apidiff must print the changes since the last tag or a given revision. If there is no
// tag, it must report this.
func TestChangesOfTheAPIArePrinted(t *testing.T) {
	testenv.Need(t, "git")
	dir := t.TempDir()
	write := func(name, text string) { writeFile(t, filepath.Join(dir, name), text, 0o755) }
	write("scripts/apidiff", string(read(t, "scripts/apidiff")))
	write("go.mod", "module example.com/shop\n\ngo 1.26.0\n")
	write("shop.go", "// Package shop sells.\npackage shop\n\n// Sell sells.\nfunc Sell() {}\n")
	write("internal/till/till.go", "// Package till is internal.\npackage till\n\n// Open opens.\nfunc Open() {}\n")
	gitIn(t, dir, "init", "--quiet", "--initial-branch=main")
	commit := func(message string) {
		gitIn(t, dir, "add", ".")
		gitIn(t, dir, "-c", "user.name=test", "-c", "user.email=test@example.invalid", "-c", "commit.gpgsign=false", "commit", "--quiet", "--message", message)
	}
	commit("first")
	apidiff := filepath.Join(dir, "scripts", "apidiff")
	const none = "apidiff: no tag of a version before this commit; to compare with another one: scripts/apidiff REVISION\n"
	if got := runScript(t, dir, nil, apidiff); got != none {
		t.Errorf("without a tag: got %q", got)
	}
	testenv.OnlyLong(t) // fetches and compiles apidiff
	gitIn(t, dir, "tag", "v1.0.0")
	write("shop.go", "// Package shop sells.\npackage shop\n\n// Sell sells n.\nfunc Sell(n int) {}\n\n// Buy buys.\nfunc Buy() {}\n")
	write("internal/till/till.go", "// Package till is internal.\npackage till\n")
	commit("second")
	gitIn(t, dir, "tag", "v1.1.0") // the released commit is compared with the previous version
	const want = `Changes of the API of example.com/shop since v1.0.0:
Incompatible changes:
- Sell: changed from func() to func(int)
Compatible changes:
- Buy: added
`
	downloads := regexp.MustCompile(`(?m)^go: downloading .*\n`) // with an empty module cache
	if diff := cmp.Diff(want, downloads.ReplaceAllString(runScript(t, dir, nil, apidiff), "")); diff != "" {
		t.Error(diff)
	}
}
