package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Changes without events must be found. The test ends the events of the folder before it makes the
// changes.
func TestChangesWithoutEventsAreFound(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i := range 5 {
		paths = append(paths, filepath.Join(dir, fmt.Sprintf("%d.log", i)))
		write(t, paths[i], "one\n")
	}
	r := begin(t, newLog(), Options{Names: paths})
	for _, path := range paths {
		r.expect(path, "one\n")
	}
	w := r.f.watcher
	w.mu.Lock()
	folder := w.sources[place{dir, "0.log"}][0].arrivals.places[0].dir
	w.mu.Unlock()
	if err := w.w.Remove(folder); err != nil {
		t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // time for pending events
	write(t, paths[0], "two\n")
	r.expect(paths[0], "one\ntwo\n")
	rename(t, paths[1], paths[1]+".1")
	write(t, paths[1], "two\n")
	r.expect(paths[1], "one\ntwo\n")
	if err := os.Truncate(paths[2], 0); err != nil {
		t.Fatal(err)
	}
	r.until("the truncation is seen", func() bool { return r.f.Stats().LagBytes == 0 })
	write(t, paths[2], "new\n")
	r.expect(paths[2], "one\nnew\n")
	r.end()
	idle := 0
	for _, s := range r.f.sources {
		if s.isIdle() {
			idle++
		}
	}
	if idle < 3 { // all but the rotated and truncated files
		t.Errorf("%d of %d sources are idle after the last line", idle, len(paths))
	}
}
