package valgrind

import "testing"

// elementNamed must find each element by its name. Its binary search needs a sorted table.
func TestElementsAreFoundByTheirNames(t *testing.T) {
	for _, e := range elements {
		if name, kind := elementNamed([]byte(e.name)); name != e.name || kind != e.kind {
			t.Errorf("%s: got %q of kind %d, want kind %d", e.name, name, kind, e.kind)
		}
	}
	for _, other := range []string{"", "i", "ipx", "zz", "errors", "\xff"} {
		if name, kind := elementNamed([]byte(other)); name != other || kind != unknown {
			t.Errorf("%q: got %q of kind %d", other, name, kind)
		}
	}
}
