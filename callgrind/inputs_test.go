package callgrind

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
)

// Each script in testdata/joined has the files of a run, and the outputs that they must give
// together. The name of an output is the command's flags.
func TestInputsAreOneProfile(t *testing.T) {
	runJoined(t, "joined")
}

// Each script in testdata/compared has files before and after a change, and the outputs that their
// comparison must give.
func TestProfilesAreCompared(t *testing.T) {
	runJoined(t, "compared")
}

func runJoined(t *testing.T, dir string) {
	names, err := filepath.Glob(filepath.Join("testdata", dir, "*.txtar"))
	if err != nil || len(names) < 2 {
		t.Fatalf("%d scripts, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			a, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var files []txtar.File
			for i, f := range a.Files {
				if words := strings.Fields(f.Name); words[0] != "table" && words[0] != "json" && words[0] != "callgrind" && words[0] != "diff" {
					files = append(files, f)
					continue
				}
				got := joinedOutput(t, files, f.Name)
				if d := cmp.Diff(string(f.Data), got); d != "" {
					t.Errorf("%s (-want, +got):\n%s", f.Name, d)
				}
				a.Files[i].Data = []byte(got)
			}
			if t.Failed() && os.Getenv("UPDATE") == "1" {
				if err := os.WriteFile(name, txtar.Format(a), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// joinedOutput returns the output of several files for the flags in words, followed by the
// diagnostics.
func joinedOutput(t *testing.T, files []txtar.File, words string) string {
	t.Helper()
	o := scriptOptions(t, words)
	if o.Output == Table && strings.HasPrefix(words, "diff") || strings.HasPrefix(words, "json --diff") {
		return comparedOutput(t, files, o)
	}
	var out bytes.Buffer
	var diagnostics strings.Builder
	diagnose := func(label string) func(string) {
		return func(s string) { diagnostics.WriteString("! " + label + ": " + s + "\n") }
	}
	o.Diagnose = diagnose("all")
	r := NewReport(&out, o)
	defer func() {
		if len(o.Limits) == 0 && r.Failed() {
			t.Errorf("%s: it has failed without limits", words)
		}
	}()
	for _, f := range files {
		if err := r.Begin(Input{Label: f.Name, Diagnose: diagnose(f.Name)}); err != nil {
			t.Fatal(err)
		}
		for _, b := range f.Data {
			if _, err := r.Write([]byte{b}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Close(); err != nil {
		diagnostics.WriteString("error: " + err.Error() + "\n")
	}
	if o.Output == JSON {
		checkSchema(t, out.String())
	}
	if r.Failed() {
		diagnostics.WriteString("failed\n")
	}
	return out.String() + diagnostics.String()
}

// comparedOutput returns the comparison of files, followed by the diagnostics. The names of the
// files begin with "before" or "after".
func comparedOutput(t *testing.T, files []txtar.File, o Options) string {
	t.Helper()
	var out bytes.Buffer
	var diagnostics strings.Builder
	diagnose := func(label string) func(string) {
		return func(s string) { diagnostics.WriteString("! " + label + ": " + s + "\n") }
	}
	o.Diagnose = diagnose("both")
	c := NewComparison(&out, o)
	for _, f := range files {
		side := c.Before
		if strings.HasPrefix(f.Name, "after") {
			side = c.After
		}
		if err := side.Begin(Input{Label: f.Name, Diagnose: diagnose(f.Name)}); err != nil {
			t.Fatal(err)
		}
		if _, err := side.Write(f.Data); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Close(); err != nil {
		diagnostics.WriteString("error: " + err.Error() + "\n")
	}
	if o.Output == JSON {
		checkSchema(t, out.String())
	}
	if c.Failed() {
		diagnostics.WriteString("failed\n")
	}
	return out.String() + diagnostics.String()
}
