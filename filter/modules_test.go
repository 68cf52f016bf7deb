package filter

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// A kernel's modules must be found even if a log names many kernels, as the log of a fleet does.
func TestModulesOfManyKernelsAreFound(t *testing.T) {
	root := t.TempDir()
	here := func(name string) string { return filepath.Join(root, name) }
	var k kernelModules
	for i := range 3 * maxReleases {
		release := fmt.Sprintf("6.1.%d", i)
		place := "/lib/modules/" + release + "/kernel/ledger.ko"
		if i%2 == 1 { // every second kernel has files here
			if err := os.MkdirAll(filepath.Dir(here(place)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(here(place), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		var want []string
		if i%2 == 1 {
			want = []string{place}
		}
		if got := k.places(here, "ledger", release); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", release, got, want)
		}
		if len(k.releases) > maxReleases {
			t.Errorf("%d kernels are remembered", len(k.releases))
		}
	}
}
