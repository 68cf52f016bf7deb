package follow

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// If two followers with one state file start together, one of them must fail, although there is no
// checkpoint yet.
func TestStateFilesAreLockedFromTheStart(t *testing.T) {
	if !locks {
		t.Skip("no locks here")
	}
	dir := t.TempDir()
	o := Options{Names: []string{filepath.Join(dir, "app.log")}, Open: newLog().open, State: filepath.Join(dir, "state")}
	results := make(chan error, 2)
	for range 2 {
		go func() {
			f, err := New(o)
			if err == nil {
				t.Cleanup(f.saver.release)
			}
			results <- err
		}()
	}
	a, b := <-results, <-results
	if a != nil {
		a, b = b, a
	}
	if a != nil || !errors.Is(b, errInUse) {
		t.Errorf("two followers of one state file: %v, and %v; want none, and %v", a, b, errInUse)
	}
}

// The first New creates the state file. The second New must report the empty file, since it may
// have been truncated.
func TestEmptyStateFilesAreReported(t *testing.T) {
	dir := t.TempDir()
	l := newLog()
	o := Options{Names: []string{filepath.Join(dir, "app.log")}, Open: l.open, Notify: l.notify, State: filepath.Join(dir, "state")}
	for _, want := range []string{"", "the checkpoint " + o.State + " is not used: the file is empty: it was truncated, or a run ended before the first checkpoint; lines may be printed again"} {
		f, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		f.saver.release()
		if told := l.messages(); told != want {
			t.Errorf("told %q, want %q", told, want)
		}
	}
}

func TestFollowersEndIfAnotherHasTheirStateFile(t *testing.T) {
	if !locks {
		t.Skip("no locks here")
	}
	dir := t.TempDir()
	path, state := filepath.Join(dir, "app.log"), filepath.Join(dir, "state")
	o := Options{Names: []string{path}, State: state}
	write(t, path, "one\n")
	r := begin(t, newLog(), o)
	r.until("its checkpoint", func() bool { return mustSize(state) > 0 })
	if err := os.Remove(state); err != nil {
		t.Fatal(err)
	}
	o.Open = newLog().open
	other, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer other.saver.release()
	before, err := os.Stat(state)
	if err != nil {
		t.Fatal(err)
	}
	write(t, path, "two\n")
	select {
	case err := <-r.done:
		if r.done <- err; !errors.Is(err, errInUse) {
			t.Errorf("ended with %v, want %v", err, errInUse)
		}
	case <-time.After(patience):
		t.Error("goes on")
	}
	if after, err := os.Stat(state); err != nil || !os.SameFile(before, after) || after.Size() != 0 {
		t.Errorf("the other's state file was replaced: %v", err)
	}
	if told := r.messages(); strings.Contains(told, "retrying") {
		t.Errorf("told %s", told)
	}
}

func TestTruncatedStateFilesAreWrittenWhole(t *testing.T) {
	for name, torn := range map[string]bool{"": false, "after a write that failed": true} {
		w, _ := testSaver(t, nil)
		w.put(savedAt("a", 1), 0)
		w.put(savedAt("b", 1), 0)
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
		truncate(t, w.path)
		w.torn = torn
		w.put(savedAt("a", 2), 0)
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
		if got := offsets(t, w.path); got["a"] != 2 || got["b"] != 1 {
			t.Errorf("%s: got %v, want a at 2 and b at 1", name, got)
		}
	}
}

// After a failed sync, the next sync must write all entries again: the system may have dropped
// unwritten data.
func TestSyncsThatFailAreRepeated(t *testing.T) {
	w, _ := testSaver(t, nil)
	w.put(savedAt("a", 1), 0)
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	w.put(savedAt("a", 2), 0)
	if err := w.save(); err != nil {
		t.Fatal(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if null.Sync() == nil {
		t.Skip("this system syncs " + os.DevNull)
	}
	w.release()
	w.file = null
	if err := w.secure(); err == nil {
		t.Error("no error of a sync that failed")
	}
	if !w.unsynced() {
		t.Fatal("a sync that failed counts")
	}
	if err := w.secure(); err != nil || w.unsynced() {
		t.Errorf("the next sync: %v, something left: %v", err, w.unsynced())
	}
	if got := offsets(t, w.path); got["a"] != 2 {
		t.Errorf("got %v, want a at 2", got)
	}
}
