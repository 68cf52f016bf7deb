//go:build unix

package follow

import (
	"os"
	"path/filepath"
	"testing"
)

// New must refuse a checkpoint that another user has planted, since it could make lines disappear.
func TestPlantedStateFilesAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root gives files to others")
	}
	const us, other, third = 0, 4711, 4712
	for name, test := range map[string]struct {
		mode         os.FileMode
		folder, file int // owners of folder and file
		refused      bool
	}{
		"another's":                  {os.ModeSticky | 0o777, us, other, true},
		"a third's":                  {os.ModeSticky | 0o777, other, third, true},
		"ours":                       {os.ModeSticky | 0o777, other, us, false},
		"of the folder's owner":      {os.ModeSticky | 0o777, other, other, false},
		"another's in a closed room": {0o755, us, other, false},
	} {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "all")
			path, state := filepath.Join(t.TempDir(), "app.log"), filepath.Join(dir, "state")
			if err := os.Mkdir(dir, 0o755); err != nil {
				t.Fatal(err)
			}
			write(t, path, "one\n")
			o := Options{Names: []string{path}, State: state}
			again(t, newLog(), o, path, "one\n")
			for _, err := range []error{os.Chown(state, test.file, -1), os.Chown(dir, test.folder, -1), os.Chmod(dir, test.mode)} {
				if err != nil {
					t.Skip(err)
				}
			}
			o.Open = newLog().open
			f, err := New(o)
			if test.refused {
				if want := state + " is " + errPlanted.Error(); err == nil || err.Error() != want {
					t.Errorf("got %v, want %s", err, want)
				}
			} else if err != nil {
				t.Error(err)
			}
			if err == nil {
				f.saver.release()
			}
		})
	}
}
