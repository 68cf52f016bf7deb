package doctor

import (
	"os"
	"path/filepath"
	"testing"
)

func TestPlacesWithoutDebugFilesAreDoubted(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"gdb/.build-id", "fuchsia/ab", "programs/bin"} {
		if err := os.MkdirAll(at(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"file", "programs/dd"} {
		if err := os.WriteFile(at(name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const noTree = " has no .build-id folder; if it holds programs or debug files, list it in symbol_paths instead"
	for _, tt := range []struct {
		path string
		tree bool
		want string // after the path
	}{
		{at("none"), true, " does not exist"},
		{at("none"), false, " does not exist"},
		{at("programs"), true, noTree},
		{at("programs"), false, ""},
		{at("file"), true, noTree},
		{at("file"), false, ""},
		{at("gdb"), true, ""},
		{at("gdb/.build-id"), true, ""},
		{at("fuchsia"), true, ""},
	} {
		want := tt.want
		if want != "" {
			want = tt.path + want
		}
		s, key := Search{SymbolPaths: []string{tt.path}}, "symbol_paths"
		if tt.tree {
			s, key = Search{BuildIDDirs: []string{tt.path}}, "build_id_directories"
		}
		got := ""
		for place, doubt := range s.Doubts() {
			got = doubt
			if place != (Place{key, tt.path}) {
				t.Errorf("%s, tree %t: the place is %v", tt.path, tt.tree, place)
			}
		}
		if got != want {
			t.Errorf("%s, tree %t: got %q, want %q", tt.path, tt.tree, got, want)
		}
	}
}
