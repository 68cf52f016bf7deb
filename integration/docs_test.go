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

// Each page of docs/start works for a reader who has a fresh clone, an empty home and that page
// alone: its commands run in its order, and print what it shows. The command for installing is that
// of README.md. The page about the Collector is followed by the tests of collector/.
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
	// what needs a phone, a board, or the kernel of this machine
	if diff := cmp.Diff([]string{"start/android.md", "start/firmware.md", "start/kernel.md", "start/operator.md"}, manual); diff != "" {
		t.Errorf("pages with a block that is not run: want (-), got (+):\n%s", diff)
	}
}

// followed returns the pages of docs that have commands for a reader of a clone, but for the
// Collector's.
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

// readerEnvironment returns an environment with nothing but the caches of Go, and the flags of
// scripts/build-static, with which packages that were built in another folder need no second build:
// a reader builds for minutes. A reader's go command also asks a server for the sums that go.sum of
// this module has.
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
