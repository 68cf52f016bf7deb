//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestReadmeExampleWorksFromAnotherModule(t *testing.T) {
	example := "package main\n\nimport (\n\t\"io\"\n\t\"log\"\n\t\"os\"\n\n\t\"github.com/symfilter/symfilter\"\n)\n\n" +
		"func main() {\n\tif err := run(); err != nil {\n\t\tlog.Fatal(err)\n\t}\n}\n\n" +
		"func run() error {\n" + pageBlocks(t, "README.md", "go")[0] + "return err\n}\n"
	mod, err := os.ReadFile(filepath.Join(checkout, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	const module = "github.com/symfilter/symfilter"
	root, err := filepath.EvalSymlinks(checkout) // each run has another link, and its packages would be compiled
	if err != nil {
		t.Fatal(err)
	}
	own := strings.Replace(string(mod), "module "+module, "module example.org/embeds", 1) +
		"\nrequire " + module + " v0.0.0\nreplace " + module + " => " + strconv.Quote(root) + "\n"
	sums, err := os.ReadFile(filepath.Join(checkout, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for name, text := range map[string]string{"main.go": example, "go.mod": own, "go.sum": string(sums)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("go", "run", "-mod=mod", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=", "GOWORK=off", "DEBUGINFOD_URLS=")
	cmd.Stdin = strings.NewReader("{{{symbol:_ZN9inventory7on_exitEv}}} was called\n")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if want := "inventory::on_exit() was called\n"; string(out) != want {
		t.Errorf("got %q, want %q", out, want)
	}
}
