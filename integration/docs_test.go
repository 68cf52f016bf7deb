//go:build linux

package integration

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/walkthrough"
)

// The commands of each page run in order, in a fresh clone with an empty home, and must print what
// the page shows. The commands for the installation are in README.md. The tests of collector/ run
// the page about the Collector.
func TestPagesOfDocsWorkAsWritten(t *testing.T) {
	t.Parallel()
	need(t, "make", "git", "g++", "xz")
	base := snapshot(t)
	reader := readerEnvironment(t)
	walkthrough.Run(t, walkthrough.Place{Dir: base, Home: t.TempDir(), Env: reader}, []walkthrough.Block{
		{Text: installCommand(t, "make build") + "symfilter --version && symfilterd --version"},
	})
	for _, m := range regexp.MustCompile(`(?m)^COPY (\S+) `).FindAllStringSubmatch(readFile(t, filepath.Join("..", "Dockerfile")), -1) {
		if _, err := os.Stat(filepath.Join(base, m[1])); err != nil {
			t.Errorf("docker build copies what make build has not made: %v", err)
		}
	}
	var manual []string
	for _, page := range followed(t) {
		blocks, err := walkthrough.Blocks(readFile(t, filepath.Join("..", "docs", page)))
		if err != nil {
			t.Errorf("docs/%s: %v", page, err)
			continue
		}
		for _, b := range blocks {
			if b.Manual {
				manual = append(manual, page)
			}
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			clone := filepath.Join(t.TempDir(), "a folder with blanks and a long name, as people have them", "symfilter")
			run(t, nil, "mkdir", "-p", filepath.Dir(clone))
			run(t, nil, "cp", "-al", base, clone)
			for i, b := range blocks {
				blocks[i].Text = strings.Replace(b.Text, "make build\n", "", 1) // the same for all pages
			}
			walkthrough.Run(t, walkthrough.Place{Dir: clone, Home: t.TempDir(), Env: reader}, blocks)
		})
	}
	// only these pages may have such blocks, which need a phone, a board, or this machine's kernel
	if diff := cmp.Diff([]string{"start/android.md", "start/firmware.md", "start/kernel.md", "start/operator.md"}, manual); diff != "" {
		t.Errorf("pages with a block that is not run: want (-), got (+):\n%s", diff)
	}
}

// followed returns the pages of docs with commands for a clone, except the Collector's page.
func followed(t *testing.T) (pages []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("..", "docs", "start", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if name := filepath.Base(path); name != "collector.md" {
			pages = append(pages, filepath.Join("start", name))
		}
	}
	return append(pages, "add-a-dialect.md", "addresses.md", "json.md", "unresolved.md")
}

// readerEnvironment returns an environment with only Go's caches, and the flags of
// scripts/build-static. With these, packages compiled in another folder are reused. go.sum has all
// sums, so no server is needed.
func readerEnvironment(t *testing.T) []string {
	t.Helper()
	env := []string{"PATH=" + os.Getenv("PATH"), "LANG=C.UTF-8", "USER=me", "CGO_ENABLED=0", "GOFLAGS=-trimpath", "GOSUMDB=off"}
	for _, name := range []string{"GOCACHE", "GOMODCACHE", "GOPROXY", "GOTOOLCHAIN"} {
		out, err := exec.Command("go", "env", name).Output()
		if err != nil {
			t.Fatal(err)
		}
		env = append(env, name+"="+strings.TrimSpace(string(out)))
	}
	return env
}
