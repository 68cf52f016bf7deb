//go:build unix

package symindex

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Indexes decide which names are shown, so a directory that others can write to is not used.
func TestModesOfTheDirectory(t *testing.T) {
	for mode, used := range map[fs.FileMode]bool{0o700: true, 0o750: true, 0o755: true, 0o770: false, 0o775: false, 0o777: false, 0o720: false, 0o702: false} {
		d := Dir{Path: filepath.Join(t.TempDir(), "indexes")}
		s := Source{ID: []byte{1}, Size: 1}
		p, err := d.Create(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := p.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(d.Path, mode); err != nil {
			t.Fatal(err)
		}
		x, err := d.Open(s)
		if err == nil {
			x.Close()
		}
		if (err == nil) != used {
			t.Errorf("opened in a directory of mode %o: %v, want it used: %v", mode, err, used)
		}
		p, err = d.Create(s)
		if err == nil {
			p.Abort()
		}
		if (err == nil) != used {
			t.Errorf("created in a directory of mode %o: %v, want it used: %v", mode, err, used)
		}
	}
	d := Dir{Path: filepath.Join(t.TempDir(), "none")}
	if _, err := d.Open(Source{ID: []byte{1}}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a directory: got %v", err)
	}
	if os.Geteuid() != 0 {
		return
	}
	dir := t.TempDir()
	if err := os.Chown(dir, 4242, 4242); err != nil {
		t.Fatal(err)
	}
	if _, err := (Dir{Path: dir}).Create(Source{ID: []byte{1}}); err == nil {
		t.Error("the directory of another user is used")
	}
}
