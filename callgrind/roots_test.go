package callgrind

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A profile may name any path: only files in folders that the operator named are opened, and the
// contents of other files are not printed.
func TestSourcesOutsideOfTheNamedFoldersAreNotOpened(t *testing.T) {
	base := t.TempDir()
	at := func(name string) string { return filepath.Join(base, filepath.FromSlash(name)) }
	const canary = "the canary sings"
	files := map[string]string{"canary": canary + "\n", "src/a.c": "int a;\n", "src/sub/b.c": "int b;\n", "more/c.c": "int c;\n", "src-2/d.c": canary + "\n"}
	for name, text := range files {
		if err := errors.Join(os.MkdirAll(filepath.Dir(at(name)), 0o700), os.WriteFile(at(name), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, to := range map[string]string{
		"src/out":     filepath.FromSlash("../canary"),
		"src/away":    at("canary"),
		"src/folder":  base,
		"src/in":      filepath.FromSlash("sub/b.c"),
		"linked":      "src",
		"src/circle":  "circle",
		"src/nowhere": "nothing",
	} {
		if err := os.Symlink(to, at(name)); err != nil {
			t.Skip("links cannot be made here: ", err)
		}
	}
	t.Chdir(at("src"))
	for _, tt := range []struct {
		name  string
		roots []string
		maps  []buildid.PrefixMap
		want  string // text in the output
	}{
		{at("src/a.c"), nil, nil, "int a;"}, // found below the current folder
		{"a.c", nil, nil, "int a;"},
		{"sub/../a.c", nil, nil, "int a;"},
		{at("linked/a.c"), nil, nil, "not opened"},
		{at("src/in"), nil, nil, "int b;"},
		{at("canary"), nil, nil, "outside of ROOT/src, not opened (--source-root names their folder):\n  ROOT/canary"},
		{"../canary", nil, nil, "not opened"},
		{at("src/sub/../../canary"), nil, nil, "not opened"},
		{at("src-2/d.c"), nil, nil, "not opened"},
		{at("src/out"), nil, nil, "path escapes from parent"},
		{at("src/away"), nil, nil, "path escapes from parent"},
		{at("src/folder/canary"), nil, nil, "path escapes from parent"},
		{at("src/circle"), nil, nil, "--source: "},
		{at("src/nowhere"), nil, nil, "are missing"},
		{at("src/none.c"), nil, nil, "are missing"},
		{at("src/sub"), nil, nil, "not a regular file"},
		{at("src"), nil, nil, "not a regular file"},
		{"/dev/null", nil, nil, "not opened"},
		{"/proc/self/environ", nil, nil, "not opened"},
		{at("more/c.c"), nil, nil, "not opened"},
		{at("more/c.c"), []string{at("src"), at("more")}, nil, "int c;"},
		{"c.c", []string{at("src"), at("more")}, nil, "int c;"},
		{at("more/c.c"), []string{filepath.FromSlash("../more")}, nil, "int c;"},
		// source roots replace the current folder
		{at("src/a.c"), []string{at("more")}, nil, "not opened"},
		{at("linked/a.c"), []string{at("linked")}, nil, "int a;"},
		{at("src/a.c"), []string{at("linked")}, nil, "int a;"},
		{at("src/a.c"), []string{at("none")}, nil, "--source: "},
		{"/build/c.c", nil, []buildid.PrefixMap{{Old: "/build", New: at("more")}}, "int c;"},
		{"/build/../canary", nil, []buildid.PrefixMap{{Old: "/build", New: at("more")}}, "not opened"},
		// a prefix map whose target is not a folder
		{"/build/canary", nil, []buildid.PrefixMap{{Old: "/build/c", New: at("c")}}, "not opened"},
		{at("canary"), nil, []buildid.PrefixMap{{Old: "/x", New: ""}}, "not opened"},
	} {
		o := Options{ReportOptions: symbolize.ReportOptions{PrefixMap: tt.maps}, Source: true, SourceRoots: tt.roots, Threshold: 100}
		got := printed(t, []byte("events: Ir\nfl="+tt.name+"\nfn=f\n1 10\n"), 1<<20, false, o)
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s, %q, %v: got\n%s\nwant %q in it", tt.name, tt.roots, tt.maps, got, tt.want)
		}
		if strings.Contains(got, canary) {
			t.Errorf("%s, %q, %v: it shows the canary:\n%s", tt.name, tt.roots, tt.maps, got)
		}
	}
}
