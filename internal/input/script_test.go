package input

import (
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// A script is a file in testdata: options in the "options:" line of its comment, the input "in",
// and the expected output.
type script struct {
	path string
	*txtar.Archive
}

func scripts(t testing.TB, folder string) (all []script) {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.txtar"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, path := range paths {
		ar, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(ar.Files) == 0 || ar.Files[0].Name != "in" {
			t.Fatalf("%s: no file in", path)
		}
		all = append(all, script{path, ar})
	}
	return all
}

func (s *script) name() string { return strings.TrimSuffix(filepath.Base(s.path), ".txtar") }

func (s *script) options() iter.Seq2[string, string] {
	_, line, _ := strings.Cut(string(s.Comment), "options:")
	line, _, _ = strings.Cut(line, "\n")
	return func(yield func(name, value string) bool) {
		for _, word := range strings.Fields(line) {
			if name, value, _ := strings.Cut(word, "="); !yield(name, value) {
				return
			}
		}
	}
}

// check compares out with the script's output, or replaces it if -update is set.
func (s *script) check(t *testing.T, out string) {
	t.Helper()
	want := ""
	if len(s.Files) > 1 {
		want = string(s.Files[1].Data)
	}
	if *update {
		s.Files = []txtar.File{s.Files[0], {Name: "out", Data: []byte(out)}}
		if err := os.WriteFile(s.path, txtar.Format(s.Archive), 0o666); err != nil {
			t.Fatal(err)
		}
	} else if diff := cmp.Diff(want, out); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
