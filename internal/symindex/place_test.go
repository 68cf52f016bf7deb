//go:build unix

package symindex

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// If the path of an index or of the directory leads to another kind of file, the file must not be
// used, and must not block. The next index must replace it if possible.
func TestWhatIsInThePlaceOfAnIndexIsNotUsed(t *testing.T) {
	s := Source{ID: []byte{1}, Size: 1}
	good := Dir{Path: filepath.Join(t.TempDir(), "good")}
	commit := func(d Dir) error {
		p, err := d.Create(s)
		if err != nil {
			return err
		}
		_, err = p.Commit()
		return err
	}
	if err := commit(good); err != nil {
		t.Fatal(err)
	}
	for name, plant := range map[string]func(path string) error{
		"a FIFO":                func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"a link to a FIFO":      func(path string) error { syscall.Mkfifo(path+".fifo", 0o600); return os.Symlink(path+".fifo", path) },
		"a link to a good file": func(path string) error { return os.Symlink(good.file(s), path) },
		"a link to itself":      func(path string) error { return os.Symlink(path, path) },
		"a link to a device":    func(path string) error { return os.Symlink("/dev/zero", path) },
	} {
		d := Dir{Path: t.TempDir()}
		if err := os.Chmod(d.Path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := plant(d.file(s)); err != nil {
			t.Fatal(err)
		}
		if x, err := d.Open(s); err == nil {
			x.Close()
			t.Errorf("%s: it is used", name)
		}
		if err := commit(d); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		x, err := d.Open(s)
		if err != nil {
			t.Errorf("%s: the index that replaced it: %v", name, err)
			continue
		}
		x.Close()
	}
	d := Dir{Path: filepath.Join(t.TempDir(), "fifo")}
	if err := syscall.Mkfifo(d.Path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := commit(d); err == nil {
		t.Error("a FIFO is used as the directory")
	}
}
