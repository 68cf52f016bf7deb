package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

// Several runs are killed while the name of a rotated file is missing. The checkpoint must keep the
// entry of this name.
func TestNamesThatAreMissingForSomeRunsAreKept(t *testing.T) {
	dir := t.TempDir()
	a, b, state := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log"), filepath.Join(dir, "state")
	o := Options{Names: []string{filepath.Join(dir, "*.log")}, State: state}
	write(t, a, "a1\n")
	write(t, b, "b1\n")
	l := newLog()
	r := begin(t, l, o)
	r.expect(a, "a1\n")
	r.expect(b, "b1\n")
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	write(t, b, "unread\n")
	rename(t, b, b+".1")
	want := "a1\n"
	for i := range 2 {
		line := fmt.Sprintf("a%d\n", i+2)
		write(t, a, line)
		want += line
		r := begin(t, l, o)
		r.expect(a, want)
		r.until("its checkpoint", func() bool { return offsets(t, state)[a] == mustSize(a) })
		data, err := os.ReadFile(state)
		if err != nil {
			t.Fatal(err)
		}
		r.end()
		if err := os.WriteFile(state, data, 0o600); err != nil { // restores the checkpoint, as after a kill
			t.Fatal(err)
		}
	}
	write(t, b, "b3\n")
	again(t, l, o, b, "b1\nunread\nb3\n")
}

func TestEntriesOfNamesThatStayMissingAreDropped(t *testing.T) {
	dir := t.TempDir()
	path, kept := filepath.Join(dir, "app.log"), filepath.Join(dir, "kept.log")
	write(t, kept, "one\n")
	state := filepath.Join(dir, "state")
	w, err := newSaver(state, nil, Options{})
	if err != nil {
		t.Fatal(err)
	}
	w.put(savedAt(path, 1), 0)
	w.put(savedAt(kept, 1), 0)
	if err := w.end(); err != nil {
		t.Fatal(err)
	}
	if w, err = newSaver(state, nil, Options{}); err != nil {
		t.Fatal(err)
	}
	defer w.release()
	now := time.Now()
	for _, step := range []struct {
		after time.Duration
		want  int // expected number of entries
	}{{0, 2}, {vanish, 2}, {vanish + 1, 1}, {3 * vanish, 1}} {
		w.forget(now.Add(step.after))
		if err := w.save(); err != nil {
			t.Fatal(err)
		}
		if got := offsets(t, state); len(got) != step.want || got[kept] != 1 {
			t.Errorf("after %v: %v, want %d entries", step.after, got, step.want)
		}
	}
}

// Rotated files must be recognised even if they cannot all be open at once. A file that is not
// recognised would be printed as new.
func TestRotatedFilesBeyondTheLimitAreKnownAgain(t *testing.T) {
	const files, room = 40, 8
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	for i := range files {
		write(t, fmt.Sprintf("%s.%d", path, i+1), fmt.Sprintf("old %d\n", i))
	}
	write(t, path, "older\n")
	o := Options{Names: []string{path}, State: filepath.Join(dir, "state"), Start: End}
	l := newLog()
	r := begin(t, l, o)
	r.until("it is open", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.out[path] != nil })
	write(t, path, "one\n")
	r.expect(path, "one\n")
	if err := r.end(); err != nil {
		t.Fatal(err)
	}
	o.Open = l.open
	f := unstarted(t, o)
	f.disk.room = room
	f.saver.restore(f.sources[path])
	_, folder, _, err := f.sources[path].search.openAll()
	if open := f.disk.open.Load(); err != nil || len(folder.Files) != files+1 || open > room+1 {
		t.Errorf("%d files of %d, %d of them open, %v; want at most %d", len(folder.Files), files+1, open, err, room+1)
	}
	lineage.CloseAll(folder.Files)
	turns(t, f, path)
	rename(t, path, path+".0")
	write(t, path, "two\n")
	s := turns(t, f, path)
	s.close()
	f.saver.release()
	if got := l.text(path); got != "one\ntwo\n" {
		t.Errorf("got %q", got)
	}
}

func TestNamesOfAnyBytesHaveACheckpoint(t *testing.T) {
	for _, name := range []string{"app\xff.log", "\xc3\xa9\xc3.log", "\ufffd.log"} {
		if got := decodePath(encodePath(name)); got != name {
			t.Errorf("%q becomes %q", name, got)
		}
		dir := t.TempDir()
		path := filepath.Join(dir, name)
		if f, err := os.Create(path); err != nil {
			continue // the system does not allow this name
		} else {
			f.Close()
		}
		for _, given := range []string{path, filepath.Join(dir, "*.log")} {
			o := Options{Names: []string{given}, State: filepath.Join(dir, "state")}
			l := newLog()
			write(t, path, "one\n")
			want := strings.Repeat("one\n", int(mustSize(path)/4))
			again(t, l, o, path, want)
			write(t, path, "one\n")
			again(t, l, o, path, want+"one\n")
			os.Remove(o.State)
		}
	}
}

// The next run must read all siblings of a file from the state file, even if the last record omits
// them. A record may omit hundreds of siblings.
func TestSiblingsAreRecordedWhenTheyChange(t *testing.T) {
	read := func(path string) string {
		w, err := newSaver(path, nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer w.release()
		s := w.loaded["a"]
		if s.Beside == nil {
			return fmt.Sprintf("none at %d", s.Reading[0].Off)
		}
		return fmt.Sprintf("%.1s at %d", *s.Beside, s.Reading[0].Off)
	}
	for _, waits := range []bool{false, true} {
		var taken func() int64
		if waits {
			taken = func() int64 { return 1 << 20 }
		}
		w, _ := testSaver(t, taken)
		many := func(of string) *string { s := strings.Repeat(of, 4000); return &s }
		for i, step := range []struct {
			beside *string
			want   string
			large  bool
		}{
			{many("x"), "x at 0", true},
			{many("x"), "x at 1", false},
			{many("x"), "x at 2", false},
			{many("y"), "y at 3", true},
			{many("y"), "y at 4", false},
			{nil, "none at 5", false},
			{nil, "none at 6", false},
			{many("y"), "y at 7", true},
		} {
			before := w.size
			s := savedAt("a", int64(i))
			s.Beside = step.beside
			w.put(s, int64(i))
			if err := w.save(); err != nil {
				t.Fatal(err)
			}
			if size := w.size - before; size > 4000 != step.large || size < 100 {
				t.Errorf("waits %v: record %d has %d bytes", waits, i, size)
			}
			data, err := os.ReadFile(w.path)
			if err != nil {
				t.Fatal(err)
			}
			killed := filepath.Join(t.TempDir(), "state")
			if err := os.WriteFile(killed, data, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := read(killed); got != step.want {
				t.Errorf("waits %v: got %s, want %s", waits, got, step.want)
			}
			again, err := newSaver(killed, nil, Options{})
			if err != nil {
				t.Fatal(err)
			}
			s.Reading[0].Off = 100
			again.put(s, 0)
			size := again.size
			if err := again.end(); err != nil {
				t.Fatal(err)
			}
			if got, want := read(killed), step.want[:strings.LastIndexByte(step.want, ' ')]+" 100"; got != want || again.size-size > 1000 {
				t.Errorf("waits %v: after another run got %s, %d bytes more; want %s", waits, got, again.size-size, want)
			}
		}
	}
}
