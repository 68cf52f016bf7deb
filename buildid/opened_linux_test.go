package buildid

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Only regular files are opened, since opening a device, or one end of a FIFO, may have an effect.
// A file that was replaced between the check and the open is closed again.
func TestOnlyRegularFilesAreOpened(t *testing.T) {
	checkNoFileStaysOpen(t)
	dir := t.TempDir()
	fifo, file := filepath.Join(dir, "fifo"), filepath.Join(dir, "file")
	putFIFO(t, fifo)
	if err := os.WriteFile(file, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	for path, opens := range map[string]int{fifo: 0, dir: 0, os.DevNull: 0, file: 1} {
		n := 0
		f, _, err := openRegularBy(path, os.Stat, func(name string, flag int, mode fs.FileMode) (*os.File, error) {
			n++
			return os.OpenFile(name, flag, mode)
		})
		if n != opens || (err == nil) != (opens == 1) || err != nil && !errors.Is(err, errNotRegular) {
			t.Errorf("%s: opened %d times, %v, want %d", path, n, err, opens)
		}
		if err == nil {
			f.Close()
		}
	}
	replaced := func(string) (fs.FileInfo, error) { return os.Stat(file) }
	if _, _, err := openRegularBy(fifo, replaced, os.OpenFile); !errors.Is(err, errNotRegular) {
		t.Errorf("a FIFO that has replaced a file: %v", err)
	}
}
