package valgrind

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// classicOf returns the output of NewText for a report written in blocks of size bytes.
func classicOf(t *testing.T, input []byte, size int) string {
	t.Helper()
	var out bytes.Buffer
	w := NewText(&out, Options{})
	for rest := input; len(rest) > 0; {
		n := min(size, len(rest))
		if _, err := w.Write(rest[:n]); err != nil {
			t.Fatal(err)
		}
		rest = rest[n:]
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// The text of each report in testdata/markup and testdata/records must equal a file in
// testdata/text. UPDATE=1 writes these files.
func TestReportsAreValgrindsText(t *testing.T) {
	for _, dir := range []string{"markup", "records"} {
		names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%d reports, %v", len(names), err)
		}
		for _, name := range names {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			base := dir + "_" + strings.TrimSuffix(filepath.Base(name), ".txtar") + ".txt"
			t.Run(base, func(t *testing.T) {
				in := bytes.ReplaceAll(a.Files[0].Data, []byte(`\0`), []byte{0})
				got := classicOf(t, in, 1<<20)
				if small := classicOf(t, in, 7); small != got {
					t.Errorf("in blocks of 7 bytes: %s", difference(small, got))
				}
				golden := filepath.Join("testdata", "text", base)
				if os.Getenv("UPDATE") == "1" {
					if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
						t.Fatal(err)
					}
				}
				want, err := os.ReadFile(golden)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(want), got); diff != "" {
					t.Errorf("(-want +got)\n%s", diff)
				}
			})
		}
	}
}

func TestNamesAreSpacedAsByValgrind(t *testing.T) {
	for name, want := range map[string]string{
		"a<b<c>>":                "a<b<c> >",
		"a<b<c<d>>>::operator>>": "a<b<c<d> > >::operator>>",
		"f":                      "f",
	} {
		if got := spaced(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
