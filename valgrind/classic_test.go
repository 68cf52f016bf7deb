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

// classicOf returns the text of a report in Valgrind's style.
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

// The reports of testdata/markup and testdata/records are the text in testdata/text. Set UPDATE=1
// to write it.
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
