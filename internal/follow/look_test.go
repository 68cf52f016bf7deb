package follow

import (
	"path/filepath"
	"testing"
	"time"
)

// Look must make the Follower examine all files at once. No events arrive, and the next check is an
// hour away.
func TestLookExaminesAllFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "a.log")
	write(t, path, "one\n")
	r := begin(t, newLog(), Options{Names: []string{path, filepath.Join(dir, "*.txt")}, Poll: true, Interval: time.Hour})
	// on a busy machine, the listing of a folder may not be complete at the first look
	r.looking(func() { r.expect(path, "one\n") })
	write(t, path, "two\n")
	r.f.Look()
	r.expect(path, "one\ntwo\n") // the file still has the name, so no folder is listed
	rename(t, path, path+".1")
	write(t, path, "three\n")
	write(t, filepath.Join(dir, "new.txt"), "new\n")
	r.looking(func() {
		r.expect(path, "one\ntwo\nthree\n")
		r.expect(filepath.Join(dir, "new.txt"), "new\n")
	})
}
