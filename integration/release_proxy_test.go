//go:build linux

package integration

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// go install of the tag builds both commands from a proxy that holds what the tag holds: go.mod of
// this module replaces nothing, and the other modules are no part of it.
func TestGoInstallOfTheTag(t *testing.T) {
	if !long() {
		t.Skip("compiles all packages from another folder; make test-long does it")
	}
	need(t, "git")
	const module, version = "github.com/symfilter/symfilter", "v0.9.0"
	tree, proxy, bin := tagged(t), t.TempDir(), t.TempDir()
	dir := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	mod := filepath.Join(dir, version+".mod")
	copyFile(t, mod, filepath.Join(tree, "go.mod"))
	if text := readFile(t, mod); strings.Contains(text, "\nreplace ") || strings.Contains(text, "\nexclude ") {
		t.Error("go.mod has a replace or exclude, with which go install refuses the module")
	}
	date := strings.TrimSpace(git(t, tree, "log", "-1", "--format=%cI"))
	for name, text := range map[string]string{"list": version + "\n", version + ".info": `{"Version":"` + version + `","Time":"` + date + `"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Create(filepath.Join(dir, version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(archive)
	files := strings.Split(strings.TrimRight(git(t, tree, "ls-tree", "-r", "-z", "--name-only", version), "\x00"), "\x00")
	var others []string // folders with a module of their own
	for _, name := range files {
		if sub, ok := strings.CutSuffix(name, "/go.mod"); ok {
			others = append(others, sub+"/")
		}
	}
	total := 0
	for _, name := range files {
		other := false
		for _, sub := range others {
			other = other || strings.HasPrefix(name, sub)
		}
		if other {
			continue
		}
		data := readFile(t, filepath.Join(tree, filepath.FromSlash(name)))
		total += len(data)
		f, err := w.Create(module + "@" + version + "/" + name)
		if err == nil {
			_, err = f.Write([]byte(data))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	if total > 500<<20 { // of the specification of modules
		t.Errorf("the module has %d bytes", total)
	}

	for _, command := range []string{"symfilter", "symfilterd"} {
		install := exec.Command("go", "install", module+"/cmd/"+command+"@"+version)
		install.Dir = t.TempDir() // outside of the checkout
		// The rest comes from the modules of this machine. The proxy's module must not stay there: a
		// later run has other bytes for the version.
		modules := filepath.Join(t.TempDir(), "modules")
		cache := strings.TrimSpace(run(t, nil, "go", "env", "GOMODCACHE"))
		install.Env = append(os.Environ(), "GOPROXY=file://"+proxy+",file://"+filepath.Join(cache, "cache", "download"), "GOMODCACHE="+modules, "GONOSUMDB=*", "GOFLAGS=-modcacherw -trimpath", "GOBIN="+bin, "GOWORK=off", "CGO_ENABLED=0")
		if out, err := install.CombinedOutput(); err != nil {
			t.Fatalf("go install: %v\n%s", err, out)
		}
		if got := run(t, nil, filepath.Join(bin, command), "--version"); !strings.Contains(got, version+" ") {
			t.Errorf("%s --version prints %q", command, got)
		}
		info := run(t, nil, "go", "version", "-m", filepath.Join(bin, command))
		if !strings.Contains(info, "\tmod\t"+module+"\t"+version+"\th1:") {
			t.Errorf("no sum of the module in\n%s", info)
		}
	}
}
