//go:build linux

package integration

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// An error must have the same fingerprint in every build of a program: with and without
// optimization, after lines have moved, and if Valgrind itself found the names. clang -O2 is an
// exception, since it turns undefined behaviour into other errors.
func TestFingerprintsAreThoseOfOtherBuilds(t *testing.T) {
	need(t, "valgrind", "g++", "clang-19", "strip")
	source := filepath.Join(checkout, "integration", "testdata", "valgrind", "errors.cc")
	text := fileText(t, source)
	dir := t.TempDir()
	moved := filepath.Join(dir, "errors.cc")
	if err := os.WriteFile(moved, []byte("// A comment.\n\n"+text), 0o644); err != nil {
		t.Fatal(err)
	}
	type build struct {
		name   string
		argv   []string
		source string
		long   bool
	}
	builds := []build{
		{name: "O0", argv: with(gxx, "-O0"), source: source},
		{name: "O2", argv: with(gxx, "-O2"), source: source},
		{name: "moved", argv: with(gxx, "-O1"), source: moved},
		{name: "O1", argv: with(gxx, "-O1"), source: source, long: true},
		{name: "O3", argv: with(gxx, "-O3"), source: source, long: true},
		{name: "clang_O1", argv: []string{"clang++-19", "-gdwarf-4", "-O1"}, source: source, long: true},
	}
	found, named := map[string]map[string]string{}, map[string]map[string]string{}
	for _, b := range builds {
		if b.long && !long() {
			continue
		}
		full, bare := filepath.Join(dir, b.name, "full"), filepath.Join(dir, b.name, "bare")
		for _, d := range []string{full, bare} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		run(t, nil, b.argv[0], append(slices.Clone(b.argv[1:]), "-Wl,--build-id", "-o", filepath.Join(full, "prog"), b.source)...)
		run(t, nil, "strip", "-o", filepath.Join(bare, "prog"), filepath.Join(full, "prog"))
		report := filepath.Join(dir, b.name, "report.xml")
		valgrindRun(t, bare, []string{"--leak-check=full", "--xml=yes", "--xml-file=" + report}, nil)
		found[b.name] = fingerprints(t, "-s", full, report)
		again := filepath.Join(dir, b.name, "again.xml")
		run(t, nil, command, "-q", "--output=valgrind:"+again, "-s", full, report)
		named[b.name] = fingerprints(t, "--no-paths", again)
		if b.name == "O2" || b.long {
			valgrindRun(t, full, []string{"--leak-check=full", "--xml=yes", "--xml-file=" + report}, nil)
			found[b.name+" unstripped"] = fingerprints(t, report)
		}
	}
	want := found["O0"]
	if len(want) != 5 {
		t.Errorf("%d errors, want 5: %v", len(want), want)
	}
	for name, got := range found {
		if !maps.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", name, got, want)
		}
	}
	for name, got := range named { // linkage names are not in the XML
		if !maps.Equal(got, named["O0"]) {
			t.Errorf("%s, by names in the report alone: got %v, want %v", name, got, named["O0"])
		}
	}
}

// fingerprints returns the findings' descriptions and their fingerprints in a report.
func fingerprints(t *testing.T, args ...string) map[string]string {
	t.Helper()
	var all []struct{ Fingerprint, Check_name string }
	if err := json.Unmarshal([]byte(run(t, nil, command, append([]string{"-q", "--output=codequality"}, args...)...)), &all); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string)
	for _, x := range all {
		found[x.Fingerprint] = x.Check_name
	}
	return found
}
