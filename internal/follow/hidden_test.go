//go:build linux

package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// A folder may have lost its permissions, or be moved or unmounted. Files are then not gone, and
// must not be read again when the folder is back, even after rotations.
func TestFilesOfAHiddenFolderAreNotReadAgain(t *testing.T) {
	for name, hide := range map[string]func(dir string) error{
		"not found": func(dir string) error { return nil },
		"a loop":    func(dir string) error { return os.Symlink(dir, dir) },
		"a file":    func(dir string) error { return os.WriteFile(dir, nil, 0o666) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "logs")
			away := dir + ".away"
			if err := os.Mkdir(dir, 0o777); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, "app.log")
			write(t, path, "first\n")
			x := newStepper(t, path, Options{})
			want := "first\n"
			x.read(want)
			number := 99 // decreases: the youngest file has the smallest number
			rotate := func(dir, line string) {
				path := filepath.Join(dir, "app.log")
				rename(t, path, fmt.Sprintf("%s.%d", path, number))
				number--
				write(t, path, line)
				want += line
			}
			for i := range 3 * maxHeld { // more than are kept open
				rotate(dir, fmt.Sprintf("line %d\n", i))
				x.read(want)
				x.age(linger + time.Second)
			}
			x.read(want)
			rename(t, dir, away)
			if err := hide(dir); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(away, "app.log"), "more\n")
			want += "more\n"
			x.read(want)
			rotate(away, "hidden\n")
			os.Remove(dir)
			rename(t, away, dir)
			x.read(want)
			rotate(dir, "seen\n")
			x.read(want)
		})
	}
}
