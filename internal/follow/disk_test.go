//go:build unix

package follow

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
)

// many writes n files of one line into a folder. It sets the folder's time to an hour ago, so that
// any later change in the folder changes this time.
func many(t *testing.T, n int) (dir string, paths []string) {
	t.Helper()
	dir = t.TempDir()
	for i := range n {
		path := filepath.Join(dir, fmt.Sprintf("app-%05d.log", i))
		write(t, path, fmt.Sprintf("line of %d\n", i))
		paths = append(paths, path)
	}
	before := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir, before, before); err != nil {
		t.Fatal(err)
	}
	return dir, paths
}

// printed returns the number of files with output.
func (l *log) printed() (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range l.out {
		if b.Len() > 0 {
			n++
		}
	}
	return n
}

func TestAFolderIsListedOnceForAllItsFiles(t *testing.T) {
	const files = 2000
	dir, paths := many(t, files)
	for name, o := range map[string]Options{"by a pattern": {}, "with a checkpoint": {State: "state"}, "by name": {}, "from the end": {Start: End}, "polling": {Poll: true}} {
		t.Run(name, func(t *testing.T) {
			o.Names = []string{filepath.Join(dir, "*.log")}
			if name == "by name" {
				o.Names = paths
			}
			if o.State != "" {
				o.State = filepath.Join(t.TempDir(), o.State)
			}
			o.Interval = time.Hour // no file is checked twice
			l := newLog()
			r := begin(t, l, o)
			if o.Start == Beginning {
				r.until("all files are read", func() bool { return l.printed() == files })
			} else {
				r.until("all files are open", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.out) == files })
			}
			if listings, opens := r.f.disk.listings.Load(), r.f.disk.opens.Load(); listings != 1 || opens != files {
				t.Errorf("%d listings and %d files opened, want 1 and %d", listings, opens, files)
			}
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			if open := r.f.disk.open.Load(); open != 0 {
				t.Errorf("%d files are open after the end", open)
			}
		})
	}
}

func TestAFolderIsListedForARoundOfRotations(t *testing.T) {
	const files, rounds = 300, 3
	_, paths := many(t, files)
	l := newLog()
	r := begin(t, l, Options{Names: paths, Poll: true, Interval: 50 * time.Millisecond})
	r.until("all files are read", func() bool { return l.printed() == files })
	want := make([]string, files)
	for i := range paths {
		want[i] = fmt.Sprintf("line of %d\n", i)
	}
	before := r.f.disk.listings.Load()
	for round := range rounds {
		for i, path := range paths {
			rename(t, path, fmt.Sprintf("%s.%d", path, round+1))
			text := fmt.Sprintf("%d of round %d\n", i, round)
			write(t, path, text)
			want[i] += text
		}
		for i, path := range paths {
			r.expect(path, want[i])
		}
	}
	if listings := r.f.disk.listings.Load() - before; listings >= rounds*files {
		t.Errorf("%d listings for %d rotations", listings, rounds*files)
	} else {
		t.Logf("%d listings for %d rotations", listings, rounds*files)
	}
}

func TestLinesDoNotWaitForAllFilesToBeOpen(t *testing.T) {
	const files = 2000
	dir, _ := many(t, files)
	for name, state := range map[string]string{"without a checkpoint": "", "with a checkpoint": filepath.Join(t.TempDir(), "state")} {
		t.Run(name, func(t *testing.T) {
			l := newLog()
			opened := make(chan int64, 1)
			var f *Follower
			open := func(name string) (*Sink, error) {
				if state != "" { // slow enough that checkpoints are written meanwhile
					time.Sleep(time.Millisecond)
				}
				sink, err := l.open(name)
				if err == nil {
					sink.WriteCloser = firstWrite{sink.WriteCloser, func() {
						select {
						case opened <- f.disk.opens.Load():
						default:
						}
					}}
				}
				return sink, err
			}
			r := begin(t, l, Options{Names: []string{filepath.Join(dir, "*.log")}, State: state, Open: open}, func(x *Follower) { f = x })
			r.until("all files are read", func() bool { return l.printed() == files })
			if n := <-opened; n >= files {
				t.Errorf("the first line was printed when %d of %d files were open", n, files)
			}
		})
	}
}

type firstWrite struct {
	w interface {
		Write([]byte) (int, error)
		Close() error
	}
	first func()
}

func (w firstWrite) Write(p []byte) (int, error) { w.first(); return w.w.Write(p) }
func (w firstWrite) Close() error                { return w.w.Close() }

// If there are more files than may be open, all of them must be read in turn. The lack of
// descriptors must be reported once.
func TestMoreFilesThanMayBeOpenTakeTurns(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		const files, room = 300, 20
		_, paths := many(t, files)
		o.Names, o.Workers = paths, 4
		l := newLog()
		r := begin(t, l, o, func(f *Follower) { f.disk.room = room })
		want := make([]string, files)
		for i := range paths {
			want[i] = fmt.Sprintf("line of %d\n", i)
			r.expect(paths[i], want[i])
		}
		grow := func(i int, path, text string) {
			write(t, path, text)
			want[i] += text
		}
		for i, path := range paths {
			grow(i, path, "more\nunfin")
		}
		for i, path := range paths {
			grow(i, path, "ished\n")
			switch i % 3 {
			case 1: // a rotated file
				rename(t, path, path+".1")
				grow(i, path+".1", "late\n")
				grow(i, path, "next\n")
			case 2: // truncated, as the next read notices
				r.expect(path, want[i])
				truncate(t, path)
				grow(i, path, "again\n")
			}
		}
		for i, path := range paths {
			r.expect(path, want[i])
		}
		r.until("files are closed", func() bool { return r.f.disk.open.Load() <= room })
		if n := strings.Count(r.messages(), "more files are followed than may be open at once (20; see ulimit -n)"); n != 1 {
			t.Errorf("told %d times that files take turns: %s", n, r.messages())
		}
	})
}

func TestFilesRemovedWhileClosedAreTold(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "app.log")
	write(t, path, "one\n")
	r := begin(t, newLog(), Options{Names: []string{path}}, func(f *Follower) { f.disk.room = 0 })
	r.expect(path, "one\n")
	r.until("it is closed", func() bool { return r.f.disk.open.Load() == 0 })
	write(t, path+".new", "two\n")
	rename(t, path+".new", path)
	r.expect(path, "one\ntwo\n")
	r.until("the loss is told", func() bool {
		return strings.Contains(r.messages(), "app.log: was closed, since too many files are followed (see ulimit -n), and then removed; the bytes after the first 4 are lost")
	})
}

func TestFilesThatCouldNotBeOpenedAreTold(t *testing.T) {
	for gone, want := range map[int]string{
		1: "app.log: a file with this name was gone before it could be opened; its lines are lost",
		2: "app.log: 2 files with this name were gone before they could be opened; their lines are lost",
	} {
		path := filepath.Join(t.TempDir(), "app.log")
		write(t, path, "one\n")
		l, g := newLog(), newGate()
		r := begin(t, l, Options{Names: []string{path}, Open: l.gated(g)})
		<-g.waiting
		r.until("events come", func() bool { r.f.watcher.mu.Lock(); defer r.f.watcher.mu.Unlock(); return len(r.f.watcher.sources) > 0 })
		for range gone + 1 {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			write(t, path, "last\n")
		}
		g.open()
		r.expect(path, "one\nlast\n")
		r.until("the loss is told", func() bool { return r.messages() == want })
	}
}

// A file that has the name before events arrive causes no event. It must not be counted against the
// event of another file, which was gone before it could be opened.
func TestFilesWithoutAnEventAreNotCounted(t *testing.T) {
	dir := t.TempDir()
	fill(t, dir)
	path := filepath.Join(dir, "app.log")
	l := newLog()
	f := unstarted(t, Options{Names: []string{path}, Open: l.open, Notify: l.notify})
	if _, err := f.disk.list(dir); err != nil {
		t.Fatal(err)
	}
	folder := f.disk.folders[dir]
	write(t, path, "one\n")
	folder.took = time.Hour // listed too recently: no new listing for now
	s := turns(t, f, path)
	defer s.close()
	if s.cur != nil || len(s.arrivals.places) == 0 {
		t.Fatalf("a file is open: %v; events are requested for %v", s.cur != nil, s.arrivals.places)
	}
	folder.took = 0
	turns(t, f, path)
	replace := func(text string) { // by a file with another inode
		write(t, path+"~", text)
		rename(t, path+"~", path)
		f.watcher.event(fsnotify.Event{Name: path, Op: fsnotify.Create})
	}
	replace("gone\n")
	replace("two\n")
	turns(t, f, path)
	s.arrivals.noticed = time.Now().Add(-eventDelay)
	s.countMissed()
	if got, want := l.text(path)+l.messages(), "one\ntwo\napp.log: a file with this name was gone before it could be opened; its lines are lost"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The first file gets its name after events are requested, but before the name is examined. Its
// event must not be counted, but the events of later files must be, even if they have the same
// inode.
func TestEventsOfTheFirstFileDoNotCount(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\n")
	l := newLog()
	f := unstarted(t, Options{Names: []string{path}, Open: l.open, Notify: l.notify})
	s := turns(t, f, path)
	defer s.close()
	f.watcher.event(fsnotify.Event{Name: path, Op: fsnotify.Create})
	if n := s.arrivals.created.Load(); n != 0 {
		t.Errorf("%d new files were counted, want 0", n)
	}
	for i := range int64(2) { // the same inode, but another file
		f.watcher.event(fsnotify.Event{Name: path, Op: fsnotify.Remove})
		f.watcher.event(fsnotify.Event{Name: path, Op: fsnotify.Create})
		if n := s.arrivals.created.Load(); n != i+1 {
			t.Errorf("%d new files were counted, want %d", n, i+1)
		}
	}
}

func TestChangedFoldersAreListedAgain(t *testing.T) {
	dir := t.TempDir()
	d := newDisk(nil)
	calls := time.Duration(0)
	d.since = func() time.Duration { calls++; return calls } // listings take no time, so a busy machine changes nothing
	for i := range 200 {
		name := fmt.Sprintf("%03d", i)
		write(t, filepath.Join(dir, name), "")
		l, err := d.list(dir)
		if err != nil {
			t.Fatal(err)
		}
		if len(l.names) != i+1 || !slices.Contains(l.names, name) {
			t.Fatalf("got %q after %d files were made", l.names, i+1)
		}
	}
	if _, err := d.list(filepath.Join(dir, "none")); err == nil {
		t.Error("no error of a folder that does not exist")
	}
}

func TestLargeFoldersAreListedForAShareOfTheTime(t *testing.T) {
	dir := t.TempDir()
	now := time.Duration(0)
	d := newDisk(nil)
	listing := false
	d.since = func() time.Duration {
		if listing {
			now += 100 * time.Millisecond // duration of a listing
		}
		listing = !listing
		return now
	}
	fill(t, dir)
	if _, err := d.list(dir); err != nil {
		t.Fatal(err)
	}
	f := d.folders[dir]
	f.took = 100 * time.Millisecond
	write(t, filepath.Join(dir, "1"), "")
	d.since = func() time.Duration { return now }
	now += listShare*f.took - 200*time.Millisecond
	if _, err := d.list(dir); err != errLater {
		t.Errorf("too early: got %v, want %v", err, errLater)
	}
	now += 300 * time.Millisecond
	if l, err := d.list(dir); err != nil || len(l.names) != listFew+2 {
		t.Errorf("later: got %d names, %v", len(l.names), err)
	}
}

// fill writes listFew+1 files into a folder, so that the folder is no longer small.
func fill(t *testing.T, dir string) {
	t.Helper()
	for i := range listFew + 1 {
		write(t, filepath.Join(dir, fmt.Sprint("file", i)), "")
	}
}

// A listing during a rotation may miss a file. It must be repeated at the next change, unless it
// took more than listSlow.
func TestSmallFoldersAreListedAtEveryChange(t *testing.T) {
	dir := t.TempDir()
	d := newDisk(nil)
	now := time.Duration(0)
	d.since = func() time.Duration { now += time.Millisecond; return now }
	for i := range 3 {
		write(t, filepath.Join(dir, fmt.Sprint(i)), "")
		if l, err := d.list(dir); err != nil || len(l.names) != i+1 {
			t.Errorf("got %q, %v after %d files were made", l.names, err, i+1)
		}
		d.folders[dir].took = listSlow
	}
}

// A file with the followed name must not be reported as lost while it has the name, even if it is
// read under another name.
func TestFilesThatHaveTheNameAreNotLost(t *testing.T) {
	for present, want := range map[bool]string{
		true:  "b.log: is the same file as A, which is already followed",
		false: "b.log: is the same file as A, which is already followed\nb.log: a file with this name was gone before it could be opened; its lines are lost",
	} {
		dir := t.TempDir()
		a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
		write(t, a, "one\n")
		write(t, b, "one\n")
		l := newLog()
		f := unstarted(t, Options{Names: []string{a, b}, Open: l.open, Notify: l.notify})
		turns(t, f, a)
		s := turns(t, f, b)
		if err := os.Remove(b); err != nil {
			t.Fatal(err)
		}
		if err := os.Link(a, b); err != nil {
			t.Fatal(err)
		}
		s.arrivals.created.Store(s.arrivals.taken + 1) // as the event of the link does
		turns(t, f, b)
		if !present {
			if err := os.Remove(b); err != nil {
				t.Fatal(err)
			}
		}
		s.arrivals.noticed = time.Now().Add(-eventDelay)
		s.countMissed()
		s.countMissed()
		if got := strings.ReplaceAll(l.messages(), a, "A"); got != want {
			t.Errorf("present %v: told\n%s\nwant\n%s", present, got, want)
		}
		s.close()
		f.sources[a].close()
	}
}
