package buildid

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestFilesThatAreReadWhole(t *testing.T) {
	checkNoFileStaysOpen(t)
	dir := t.TempDir()
	at := func(name string, size int64) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o666); err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(path, size); err != nil {
			t.Fatal(err)
		}
		return path
	}
	fifo := filepath.Join(dir, "fifo")
	putFIFO(t, fifo)
	for _, tt := range []struct {
		path string
		ok   bool
		err  error
	}{
		{at("empty", 0), true, nil},
		{at("small", 1000), true, nil},
		{at("limit", 2000), true, nil},
		{at("large", 2001), false, nil},
		{filepath.Join(dir, "missing"), false, fs.ErrNotExist},
		{fifo, false, errNotRegular},
		{dir, false, errNotRegular},
		{os.DevNull, false, errNotRegular},
	} {
		w, ok, err := readWhole(tt.path, 2000)
		if ok != tt.ok || !errors.Is(err, tt.err) {
			t.Errorf("%s: %v, %v; want %v, %v", tt.path, ok, err, tt.ok, tt.err)
		}
		if info, _ := os.Stat(tt.path); ok && (int64(len(w.data)) != info.Size() || w.state != stateOf(info)) {
			t.Errorf("%s: %d bytes of %+v", tt.path, len(w.data), w.state)
		}
		w.free()
	}
	// the file has more bytes than stat reports
	if _, ok, err := readWhole("/proc/self/maps", 2000); ok || err != nil {
		t.Errorf("/proc/self/maps: %v, %v; want another way", ok, err)
	}
}
