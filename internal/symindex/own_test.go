//go:build unix

package symindex

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

// Indexes decide which names are shown, so a directory that others can write to must not be used.
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

// While the directory was writable, another user may have put a file in the place of an index. The
// file must not be used, and opening it must not block.
func TestWhatIsNoFileOfTheUserIsNoIndex(t *testing.T) {
	s := Source{ID: []byte{1}, Size: 1}
	for name, plant := range map[string]func(t *testing.T, path string) error{
		"a FIFO":   func(t *testing.T, path string) error { return syscall.Mkfifo(path, 0o600) },
		"a folder": func(t *testing.T, path string) error { return os.Mkdir(path, 0o700) },
		"a link to an index": func(t *testing.T, path string) error {
			good := path + ".elsewhere"
			return errors.Join(os.Rename(path, good), os.Symlink(good, path))
		},
		"a link to a device":          func(t *testing.T, path string) error { return os.Symlink("/dev/zero", path) },
		"an index that others change": func(t *testing.T, path string) error { return os.Chmod(path, 0o666) },
		"an index of another user": func(t *testing.T, path string) error {
			err := os.Chown(path, 4242, 4242)
			if errors.Is(err, fs.ErrPermission) {
				testenv.Forbidden(t, "to give a file away", err)
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			d := Dir{Path: t.TempDir()}
			p, err := d.Create(s)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Commit(); err != nil {
				t.Fatal(err)
			}
			x, err := d.Open(s)
			if err != nil {
				t.Fatal(err)
			}
			x.Close()
			path := d.file(s)
			if name == "a FIFO" || name == "a folder" || name == "a link to a device" {
				os.Remove(path)
			}
			if err := plant(t, path); err != nil {
				t.Fatal(err)
			}
			if x, err := d.Open(s); !errors.Is(err, ErrDamaged) {
				x.Close()
				t.Errorf("got %v, want %v", err, ErrDamaged)
			}
		})
	}
}
