//go:build linux

package integration

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const rootModule = "github.com/symfilter/symfilter"

// nextVersion returns the version at the head of CHANGELOG.md, which the next tag will have.
func nextVersion(t *testing.T) string {
	t.Helper()
	m := regexp.MustCompile(`(?m)^## (\d+\.\d+\.\d+)`).FindStringSubmatch(readFile(t, filepath.Join("..", "CHANGELOG.md")))
	if m == nil {
		t.Fatal("CHANGELOG.md has no version")
	}
	return "v" + m[1]
}

// publish adds a module to a proxy, which is a folder. The module is the committed content of a
// folder in the repository tree, without the modules nested in it.
func publish(t *testing.T, proxy, tree, folder string) {
	t.Helper()
	module, version := rootModule, nextVersion(t)
	if folder != "" {
		module += "/" + strings.TrimSuffix(folder, "/")
	}
	var names, others []string
	for name := range strings.SplitSeq(strings.TrimRight(git(t, tree, "ls-tree", "-r", "-z", "--name-only", "HEAD"), "\x00"), "\x00") {
		if name, ok := strings.CutPrefix(name, folder); ok {
			names = append(names, name)
			if sub, ok := strings.CutSuffix(name, "/go.mod"); ok {
				others = append(others, sub+"/")
			}
		}
	}
	var archive bytes.Buffer
	w, total := zip.NewWriter(&archive), 0
	for _, name := range names {
		other := false
		for _, sub := range others {
			other = other || strings.HasPrefix(name, sub)
		}
		if other {
			continue
		}
		data := readFile(t, filepath.Join(tree, filepath.FromSlash(folder+name)))
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
	if total > 500<<20 { // limit in the specification of modules
		t.Errorf("the module %s has %d bytes", module, total)
	}
	dir := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	date := strings.TrimSpace(git(t, tree, "log", "-1", "--format=%cI"))
	for name, text := range map[string]string{
		"list":            version + "\n",
		version + ".info": `{"Version":"` + version + `","Time":"` + date + `"}`,
		version + ".mod":  readFile(t, filepath.Join(tree, filepath.FromSlash(folder+"go.mod"))),
		version + ".zip":  archive.String(),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fromProxy returns a function that runs the go command with this repository's modules from the
// proxy. Other modules come from this machine's module cache. Downloads go to a temporary cache,
// since the proxy of a later run has other bytes for the same version.
func fromProxy(t *testing.T, proxy string) func(dir string, args ...string) string {
	cache := strings.TrimSpace(run(t, nil, "go", "env", "GOMODCACHE"))
	env := append(os.Environ(), "GOPROXY=file://"+proxy+",file://"+filepath.Join(cache, "cache", "download"),
		"GOMODCACHE="+filepath.Join(t.TempDir(), "modules"), "GONOSUMDB=*", "GOFLAGS=-modcacherw -trimpath", "GOWORK=off", "CGO_ENABLED=0")
	return func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.Command("go", args...)
		cmd.Dir, cmd.Env = dir, append(env, "GOBIN="+dir)
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, stderr.Bytes())
		}
		return string(out)
	}
}

// From a proxy that has only the root module at its tag, go install must build both commands. So
// our go.mod may have no replace directive, and may require no nested module.
func TestGoInstallOfTheTag(t *testing.T) {
	if !long() {
		t.Skip("compiles all packages from another folder; make test-long does it")
	}
	need(t, "git")
	tree, proxy, bin, version := tagged(t), t.TempDir(), t.TempDir(), nextVersion(t)
	publish(t, proxy, tree, "")
	goCommand := fromProxy(t, proxy)
	for _, command := range []string{"symfilter", "symfilterd"} {
		goCommand(bin, "install", rootModule+"/cmd/"+command+"@"+version)
		if got := run(t, nil, filepath.Join(bin, command), "--version"); !strings.HasPrefix(got, command+" "+version+" ") {
			t.Errorf("%s --version prints %q", command, got)
		}
		info := run(t, nil, "go", "version", "-m", filepath.Join(bin, command))
		if !strings.Contains(info, "\tmod\t"+rootModule+"\t"+version+"\th1:") {
			t.Errorf("no sum of the module in\n%s", info)
		}
	}
}

// In another module, a Collector must be built with the processor at its tag. The replace in the
// processor's go.mod has no effect there, so this go.mod must require the root module at its tag.
func TestTheProcessorIsBuiltFromItsTag(t *testing.T) {
	if !long() {
		t.Skip("compiles the Collector's packages; make test-long does it")
	}
	need(t, "git")
	tree, proxy, user, version := tagged(t), t.TempDir(), t.TempDir(), nextVersion(t)
	publish(t, proxy, tree, "")
	publish(t, proxy, tree, "collector/")
	for name, text := range map[string]string{
		"go.mod":  "module example.invalid/collector\n\ngo 1.26.0\n\nrequire " + rootModule + "/collector " + version + "\n",
		"main.go": "package main\n\nimport (\n\t\"fmt\"\n\n\t\"" + rootModule + "/collector\"\n)\n\nfunc main() { fmt.Println(collector.NewFactory().Type()) }\n",
	} {
		if err := os.WriteFile(filepath.Join(user, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	goCommand := fromProxy(t, proxy)
	goCommand(user, "build", "-mod=mod", "-o", "uses", ".")
	if got := run(t, nil, filepath.Join(user, "uses")); got != "symfilter\n" {
		t.Errorf("the processor is named %q", got)
	}
	for _, module := range []string{rootModule, rootModule + "/collector"} {
		if info := run(t, nil, "go", "version", "-m", filepath.Join(user, "uses")); !strings.Contains(info, "\tdep\t"+module+"\t"+version+"\th1:") {
			t.Errorf("%s is not that of the tag in\n%s", module, info)
		}
	}
}
