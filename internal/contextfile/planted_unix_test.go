//go:build unix

package contextfile

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

func TestFilesOfOtherUsersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file away")
	}
	const nobody = 65534
	for _, test := range []struct {
		mode  os.FileMode
		owner int
		want  error
	}{
		{0o777 | os.ModeSticky, nobody, errPlanted},
		{0o777 | os.ModeSticky, 0, nil},
		{0o755, nobody, nil},
	} {
		dir := t.TempDir()
		path := filepath.Join(dir, "context")
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.Chown(path, test.owner, test.owner), os.Chmod(dir, test.mode)); err != nil {
			t.Fatal(err)
		}
		f, _, _, err := Open(path)
		if !errors.Is(err, test.want) {
			t.Errorf("a file of user %d in a folder of mode %v: %v, want %v", test.owner, test.mode, err, test.want)
		}
		if err == nil {
			f.Close()
		}
	}
}
