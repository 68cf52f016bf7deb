//go:build unix

package contextfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/symfilter/symfilter/internal/testenv"
)

func TestOtherThingsThanFilesAreRefused(t *testing.T) {
	dir := t.TempDir()
	long := strings.Repeat("n", 300) // bytes; file systems have names of at most 255
	target, link, folder := filepath.Join(dir, "target"), filepath.Join(dir, "link"), filepath.Join(dir, "folder")
	if err := os.WriteFile(target, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(target, link); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		link:                             "is a symbolic link; name the file itself",
		folder:                           "is not a regular file; name another file",
		folder + "/":                     "is not a regular file; name another file",
		folder + "/..":                   "is not a regular file; name another file",
		filepath.Join(dir, "none", "of"): "open the folder of the context file: ",
		filepath.Join(target, "of"):      "open the folder of the context file: ",
		filepath.Join(dir, long):         "cannot be opened: file name too long",
	} {
		if _, _, _, err := Open(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

// A second process must not use the file: it would overwrite the saved context of the first.
func TestAFileIsOfOneProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "context")
	f, _, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		synctest.Test(t, func(t *testing.T) { // Open waits
			if _, _, _, err := Open(path); !errors.Is(err, errInUse) {
				t.Errorf("the second process got %v, want %v", err, errInUse)
			}
		})
		if err := f.Save([]byte(`{"v":2}`)); err != nil {
			t.Fatal(err)
		}
	}
	f.Close()
	again, context, _, err := Open(path)
	if err != nil || string(context) != `{"v":2}` {
		t.Fatalf("the next process got %q, %v", context, err)
	}
	defer again.Close()
}

// Save must create the file again after a removal. It must not replace a file that another program
// has created at the path.
func TestReplacedFilesAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "context")
	f, _, _, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := f.Save([]byte(`{"v":2}`)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("other"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Save([]byte(`{"v":2}`)); !errors.Is(err, errReplaced) {
		t.Errorf("got %v, want %v", err, errReplaced)
	}
	if got, _ := os.ReadFile(path); string(got) != "other" {
		t.Errorf("the file has %q now", got)
	}
}

func TestFilesOfOtherUsersAreRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		testenv.Forbidden(t, "to give a file away", "only root may")
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
