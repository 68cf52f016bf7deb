package follow

import (
	"path/filepath"
	"testing"
	"time"
)

// Without events, and before the next check is due, Look finds lines, rotated files and new ones.
func TestLookExaminesAllFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.log")
	write(t, path, "one\n")
	r := begin(t, newLog(), Options{Names: []string{path, filepath.Join(dir, "*.txt")}, Poll: true, Interval: time.Hour})
	// a folder that has just changed, and that took long to list on a busy machine, is listed later
	r.looking(func() { r.expect(path, "one\n") })
	write(t, path, "two\n")
	r.f.Look()
	r.expect(path, "one\ntwo\n") // the name has its file: no folder is listed
	rename(t, path, path+".1")
	write(t, path, "three\n")
	write(t, filepath.Join(dir, "new.txt"), "new\n")
	r.looking(func() {
		r.expect(path, "one\ntwo\nthree\n")
		r.expect(filepath.Join(dir, "new.txt"), "new\n")
	})
}
