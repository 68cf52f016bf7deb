package follow

import (
	"os"
	"path/filepath"
	"testing"
)

func TestHolesAreNotSearched(t *testing.T) {
	const size = 1 << 40
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\nunfinished")
	if err := os.Truncate(path, size); err != nil {
		t.Skip(err) // the file system does not support holes
	}
	d := newDisk(nil)
	g, err := d.openGeneration(path)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	got, turns := "", 0
	buf := make([]byte, readSize)
	for more := true; more; turns++ {
		if more, err = g.lines(t.Context(), buf, func(p []byte, _ bool) error { got += string(p); return nil }); err != nil || turns > 10 {
			t.Fatalf("after %d turns at byte %d: %v", turns, g.look, err)
		}
	}
	if got != "one\n" || g.look != size || g.off != 4 {
		t.Errorf("got %q, searched up to %d from %d", got, g.look, g.off)
	}
}
