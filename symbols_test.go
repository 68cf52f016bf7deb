package symfilter

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A folder in DebugDirs must be searched before the system's folder, and must not replace it.
func TestDebugDirsAreAddedToTheSystems(t *testing.T) {
	const (
		inventory = "77/9e1ed32e11627838c3d1658cabab0af2a008bd"
		ledger    = "ee/cd138796b4297ca7ee7bb08854e1173fee4bff"
	)
	trees := t.TempDir()
	for name, files := range map[string][]string{"named": {inventory}, "system": {inventory, ledger}, "empty": nil} {
		if err := os.MkdirAll(filepath.Join(trees, name), 0o777); err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			place := filepath.Join(".build-id", file+".debug")
			data, err := os.ReadFile(filepath.Join("testdata", "debug", place))
			if err != nil {
				t.Fatal(err)
			}
			place = filepath.Join(trees, name, place)
			if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(place, data, 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	defer func(dir string) { systemDebugDir = dir }(systemDebugDir)
	systemDebugDir = filepath.Join(trees, "system")
	in := func(names ...string) (dirs []string) {
		for _, name := range names {
			dirs = append(dirs, filepath.Join(trees, name))
		}
		return dirs
	}
	for _, test := range []struct {
		name              string
		symbols           Symbols
		inventory, ledger string // the trees that their files come from
	}{
		{"nothing named", Symbols{}, "system", "system"},
		{"another folder", Symbols{DebugDirs: in("named")}, "named", "system"},
		{"two folders", Symbols{DebugDirs: in("empty", "named")}, "named", "system"},
		{"the system's folder itself", Symbols{DebugDirs: in("system", "named")}, "system", "system"},
		{"without the system's", Symbols{DebugDirs: in("named"), NoDefaultDebugDirs: true}, "named", "none"},
		{"no folder at all", Symbols{NoDefaultDebugDirs: true}, "none", "none"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.symbols.NoCache = true
			opened, err := test.symbols.Open()
			if err != nil {
				t.Fatal(err)
			}
			defer opened.Close()
			from := func(place string) string {
				id, err := buildid.Parse([]byte(place[:2] + place[3:]))
				if err != nil {
					t.Fatal(err)
				}
				opened.Symbolizer.Ask(t.Context(), nil, symbolize.Location{ID: id}, symbolize.Policy{}) // only the file matters
				path := opened.Symbolizer.Report(id, "").Path
				if path == "" {
					return "none"
				}
				tree, err := filepath.Rel(trees, path)
				if err != nil {
					t.Fatal(err)
				}
				return filepath.Dir(filepath.Dir(filepath.Dir(tree)))
			}
			got := []string{from(inventory), from(ledger)}
			if diff := cmp.Diff([]string{test.inventory, test.ledger}, got); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}
