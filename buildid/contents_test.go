package buildid

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// For each path of a symbol path, roots must return the number of ELF files with build IDs there,
// and the faults. Both include subfolders.
func TestRootsDescribeWhatIsBelowThem(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "folder", "sub", "one"), program{id: wanted}.bytes(t))
	put(t, filepath.Join(dir, "folder", "two"), program{id: another}.bytes(t))
	put(t, filepath.Join(dir, "folder", "none"), program{}.bytes(t))
	put(t, filepath.Join(dir, "folder", "cut"), program{id: wanted}.bytes(t)[:20])
	put(t, filepath.Join(dir, "folders", "text"), []byte("text"))
	put(t, filepath.Join(dir, "bad.zip"), []byte("PK\x03\x04"))
	var paths []string
	for _, name := range []string{"folder", "folder/", "folders", "folder/two", "folder/none", "folder/cut", "bad.zip", "missing"} {
		paths = append(paths, dir+string(filepath.Separator)+filepath.FromSlash(name))
	}
	p := newSymbolPath(paths...)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if roots, err := p.roots(ended); err == nil {
		t.Errorf("got %v without a walk", roots)
	}
	roots, err := p.roots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, r := range roots {
		if r.path != paths[i] {
			t.Errorf("root %d is %s, want %s", i, r.path, paths[i])
		}
		rel, _ := filepath.Rel(dir, r.path)
		line := fmt.Sprintf("%s: %d files, ID %q", filepath.ToSlash(rel), r.files, r.id)
		for _, f := range r.faults {
			rel, _ := filepath.Rel(dir, f.Where)
			line += "; " + filepath.ToSlash(rel) + ": " + f.Reason
		}
		got = append(got, line)
	}
	const cut = "; folder/cut: not an ELF file: ELF header: the file ends after 20 bytes"
	want := []string{
		`folder: 2 files, ID ""` + cut,
		`folder: 2 files, ID ""` + cut,
		`folders: 0 files, ID ""`,
		`folder/two: 1 files, ID "` + another + `"`,
		`folder/none: 0 files, ID ""`,
		`folder/cut: 0 files, ID ""` + cut,
		`bad.zip: 0 files, ID ""; bad.zip: not all of this zip file can be used: zip: not a valid zip file`,
		`missing: 0 files, ID ""; missing: no such file`,
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("roots (-got +want):\n%s", diff)
	}
}

func TestListsThatNameNoFile(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "good"), []byte(wanted+" one\nnot an ID\n"))
	put(t, filepath.Join(dir, "text"), []byte("a log\n"))
	put(t, filepath.Join(dir, "empty"), nil)
	for name, want := range map[string]error{"good": nil, "text": errNoLines, "empty": errNoLines} {
		if err := NewIDsFile(filepath.Join(dir, name)).check(t.Context()); !errors.Is(err, want) || (err == nil) != (want == nil) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
}
