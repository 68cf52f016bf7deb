//go:build unix

package follow

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fsnotify/fsnotify"
	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/lineage"
)

func TestOnlyRegularFilesAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		make func(path string) error
		want string
	}{
		"FIFO":   {func(path string) error { return syscall.Mkfifo(path, 0o666) }, "not a regular file but a FIFO"},
		"folder": {func(path string) error { return os.Mkdir(path, 0o777) }, "not a regular file but a folder"},
		"device": {func(path string) error { return os.Symlink("/dev/tty", path) }, "not a regular file but a device"},
		"loop":   {func(path string) error { return os.Symlink(path, path) }, "too many (levels of symbolic links|symbolic links encountered)"},
	} {
		t.Run(name, func(t *testing.T) {
			bothWays(t, func(t *testing.T, o Options) {
				path := filepath.Join(t.TempDir(), "app.log")
				if err := test.make(path); err != nil {
					t.Fatal(err)
				}
				o.Names = []string{path}
				r := begin(t, newLog(), o)
				r.expectMessages("app.log: (is )?" + test.want + "; (waiting for a regular file|retrying)")
				os.Remove(path)
				write(t, path, "one\n")
				r.expect(path, "one\n")
				rename(t, path, path+".1")
				if err := test.make(path); err != nil {
					t.Fatal(err)
				}
				write(t, path+".1", "two\n")
				r.expect(path, "one\ntwo\n")
				again := regexp.MustCompile("(?s)" + test.want + ".*" + test.want)
				r.until("it is told again", func() bool { return again.MatchString(r.messages()) })
				os.Remove(path)
				write(t, path, "three\n")
				r.expect(path, "one\ntwo\nthree\n")
			})
		})
	}
}

func TestWhatCannotBeReadIsTriedAgain(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "logs")
	path := filepath.Join(dir, "app.log")
	write(t, dir, "no folder\n")
	r := begin(t, newLog(), Options{Names: []string{path}})
	r.expectMessages("app.log: not a directory; retrying")
	os.Remove(dir)
	os.Mkdir(dir, 0o777)
	write(t, path, "one\n")
	r.expect(path, "one\n")
}

// A chain of links must be followed. In Kubernetes, a container's log is a link to a link in its
// pod's folder, which is rotated, removed and replaced.
func TestChainsOfLinksAreFollowed(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		containers, pod, docker := filepath.Join(dir, "containers"), filepath.Join(dir, "pods", "uid", "app"), filepath.Join(dir, "docker")
		for _, d := range []string{containers, pod, docker} {
			if err := os.MkdirAll(d, 0o777); err != nil {
				t.Fatal(err)
			}
		}
		link := func(target, path string) {
			t.Helper()
			os.Remove(path + ".new")
			if err := os.Symlink(target, path+".new"); err != nil {
				t.Fatal(err)
			}
			rename(t, path+".new", path)
		}
		path := filepath.Join(containers, "app_ns_app-123.log")
		o.Names = []string{path}
		r := begin(t, newLog(), o)
		link("../pods/uid/app/0.log", path)
		link(filepath.Join(docker, "a.log"), filepath.Join(pod, "0.log"))
		write(t, filepath.Join(docker, "a.log"), "one\n")
		want := "one\n"
		r.expect(path, want)
		add := func(file, text string) {
			t.Helper()
			write(t, file, text)
			want += text
			r.expect(path, want)
		}
		rename(t, filepath.Join(docker, "a.log"), filepath.Join(docker, "a.log.1"))
		add(filepath.Join(docker, "a.log"), "two\n")
		write(t, filepath.Join(docker, "b.log"), "three\n") // the second link gets another target
		link(filepath.Join(docker, "b.log"), filepath.Join(pod, "0.log"))
		want += "three\n"
		r.expect(path, want)
		os.Remove(filepath.Join(pod, "0.log")) // the runtime writes without the second link
		add(filepath.Join(pod, "0.log"), "four\n")
		rename(t, filepath.Join(pod, "0.log"), filepath.Join(pod, "0.log.20261120-132438")) // the kubelet rotates the log
		add(filepath.Join(pod, "0.log"), "five\n")
		write(t, filepath.Join(pod, "1.log"), "six\n") // the container restarts
		link("../pods/uid/app/1.log", path)
		want += "six\n"
		r.expect(path, want)
		os.RemoveAll(filepath.Join(dir, "pods"))
		os.MkdirAll(pod, 0o777) // another pod
		add(filepath.Join(pod, "1.log"), "seven\n")
	})
}

// If a link to a folder gets another target, the file in the new folder must be read. Kubernetes
// updates a volume by changing the target of the link ..data.
func TestSwapsOfFoldersAreFollowed(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		swap := func(n int, text string) {
			data := fmt.Sprintf("..2026_%d", n)
			os.Mkdir(filepath.Join(dir, data), 0o777)
			write(t, filepath.Join(dir, data, "app.log"), text)
			if err := os.Symlink(data, filepath.Join(dir, "..data_tmp")); err != nil {
				t.Fatal(err)
			}
			rename(t, filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data"))
		}
		path := filepath.Join(dir, "app.log")
		swap(1, "one\n")
		if err := os.Symlink("..data/app.log", path); err != nil {
			t.Fatal(err)
		}
		o.Names = []string{path}
		r := begin(t, newLog(), o)
		r.expect(path, "one\n")
		swap(2, "two\n")
		r.expect(path, "one\ntwo\n")
		write(t, filepath.Join(dir, "..2026_2", "app.log"), "three\n")
		r.expect(path, "one\ntwo\nthree\n")
	})
}

func TestChain(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	os.MkdirAll(filepath.Join(dir, "a", "b"), 0o777)
	write(t, filepath.Join(dir, "a", "b", "log"), "")
	for path, target := range map[string]string{"c": "a/b", "a/up": "../c/log", "abs": filepath.Join(dir, "a", "up"), "loop": "loop"} {
		if err := os.Symlink(target, filepath.Join(dir, path)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		"a/b/log":    "a/b/log",
		"c/log":      "c a/b/log",
		"a/up":       "a/up c a/b/log",
		"abs":        "abs a/up c a/b/log",
		"none/log":   "none",
		"c/none/log": "c a/b/none",
		"a":          "a",
		"loop":       strings.TrimSpace(strings.Repeat("loop ", maxLinks+1)),
	} {
		var got []string
		for _, p := range chain(filepath.Join(dir, path)) {
			rel, _ := filepath.Rel(dir, filepath.Join(p.dir, p.name))
			got = append(got, rel)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
	}
}

func TestPatternsMatchNewFiles(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		dir := t.TempDir()
		file := func(name string) string { return filepath.Join(dir, name) }
		os.Mkdir(file("one"), 0o777)
		write(t, file("one/a.log"), "before\n")
		o.Names = []string{file("*/*.log*")}
		o.Start = End
		o.Skip = func(info os.FileInfo) bool { return info.Name() == "out.log" }
		l := newLog()
		r := begin(t, l, o)
		write(t, file("one/out.log"), "skipped\n")
		r.until("the first file is opened", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.out[file("one/a.log")] != nil })
		write(t, file("one/a.log"), "a1\n")
		r.expect(file("one/a.log"), "a1\n")
		write(t, file("one/b.log"), "b1\n")
		r.expect(file("one/b.log"), "b1\n")
		os.Mkdir(file("two"), 0o777)
		write(t, file("two/c.log"), "c1\n")
		r.expect(file("two/c.log"), "c1\n")
		os.Mkdir(file("two/folder.log"), 0o777)
		write(t, file("two/c.log.gz"), "compressed\n")
		rename(t, file("one/a.log"), file("one/a.log.1"))
		write(t, file("one/a.log"), "a2\n")
		r.expect(file("one/a.log"), "a1\na2\n")
		copyTruncate(t, file("one/b.log"), file("one/b.log.1"))
		write(t, file("one/b.log"), "b2\n")
		r.expect(file("one/b.log"), "b1\nb2\n")
		write(t, file("two/z.log"), "last\n")
		r.expect(file("two/z.log"), "last\n")
		if err := r.end(); err != nil {
			t.Error(err)
		}
		var names []string
		for name := range l.out {
			rel, _ := filepath.Rel(dir, name)
			names = append(names, rel)
		}
		slices.Sort(names)
		if d := cmp.Diff(names, []string{"one/a.log", "one/b.log", "two/c.log", "two/z.log"}); d != "" {
			t.Errorf("followed (-got +want)\n%s", d)
		}
		for _, f := range []string{"one/a.log", "one/b.log", "two/c.log"} {
			if got := r.text(file(f)); strings.Count(got, "\n") != map[string]int{"one/a.log": 2, "one/b.log": 2, "two/c.log": 1}[f] {
				t.Errorf("%s: got %q", f, got)
			}
		}
	})
}

func TestPatternsWithoutFilesAreTold(t *testing.T) {
	dir := t.TempDir()
	r := begin(t, newLog(), Options{Names: []string{filepath.Join(dir, "*.log")}})
	r.expectMessages(`\*\.log: matches no file yet; waiting for one`)
	path := filepath.Join(dir, "app.log")
	write(t, path, "one\n")
	r.expect(path, "one\n")
}

func TestPatternsOfRotatedFiles(t *testing.T) {
	for _, test := range []struct{ base, first, second, third string }{
		{"app.log", "app.log.2", "app.log.1", "app.log.3"},
		{"app.log", "app-20261119.log", "app-20261120.log", "app-20261121.log"},
	} {
		dir := t.TempDir()
		file := func(name string) string { return filepath.Join(dir, name) }
		for i, name := range []string{test.first, test.second, test.base} {
			write(t, file(name), fmt.Sprintf("%d\n", i+1))
			changed := time.Now().Add(time.Duration(i-10) * time.Minute)
			os.Chtimes(file(name), changed, changed)
		}
		o := Options{Names: []string{file("app*")}, State: filepath.Join(dir, "state")}
		l := newLog()
		again(t, l, o, file(test.base), "1\n2\n3\n")
		rename(t, file(test.base), file(test.third))
		write(t, file(test.third), "4\n")
		write(t, file(test.base), "5\n")
		again(t, l, o, file(test.base), "1\n2\n3\n4\n5\n")
		again(t, l, o, file(test.base), "1\n2\n3\n4\n5\n")
		if len(l.out) != 1 || l.messages() != "" {
			t.Errorf("followed %d files, told %s", len(l.out), l.messages())
		}
		o.State, o.Start = "", End
		l = newLog()
		r := begin(t, l, o)
		r.until("it is open", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return len(l.out) == 1 })
		write(t, file(test.base), "6\n")
		r.expect(file(test.base), "6\n")
	}
}

func TestAFileIsReadOnce(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.log"), filepath.Join(dir, "b.log")
	write(t, a, "one\n")
	if err := os.Link(a, b); err != nil {
		t.Fatal(err)
	}
	r := begin(t, newLog(), Options{Names: []string{a, b, a}, Workers: 1})
	r.expect(a, "one\n")
	r.expectMessages("b.log: is the same file as " + a + ", which is already followed")
	write(t, b, "two\n")
	r.expect(a, "one\ntwo\n")
	if got := r.text(b); got != "" {
		t.Errorf("got %q under the other name", got)
	}
}

func TestWithoutEventsFilesAreLookedAt(t *testing.T) {
	dir := t.TempDir()
	for name, open := range map[string]func() (*fsnotify.Watcher, error){
		"no more instances": func() (*fsnotify.Watcher, error) { return nil, os.NewSyscallError("inotify_init1", syscall.EMFILE) },
		"no more watches": func() (*fsnotify.Watcher, error) {
			w, err := fsnotify.NewWatcher()
			if err == nil {
				err = w.Close() // its methods fail from now on
			}
			return w, err
		},
		"overflow": func() (*fsnotify.Watcher, error) {
			w, err := fsnotify.NewWatcher()
			if err == nil {
				w.Errors = make(chan error, 1)
				w.Errors <- fsnotify.ErrEventOverflow
			}
			return w, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			var paths []string
			for i := range 3 {
				paths = append(paths, filepath.Join(dir, fmt.Sprintf("%s %d.log", name, i)))
			}
			r := begin(t, newLog(), Options{Names: paths}, func(f *Follower) { f.open = open })
			for _, path := range paths {
				write(t, path, "one\n")
			}
			for _, path := range paths {
				r.expect(path, "one\n")
				write(t, path, "two\n")
				r.expect(path, "one\ntwo\n")
			}
			told := strings.Count(r.messages(), "checked at intervals")
			if want := map[string]int{"overflow": 0}; name != "overflow" && told != 1 || name == "overflow" && told != want[name] {
				t.Errorf("told %s", r.messages())
			}
		})
	}
}

func TestFoldersThatAreReplaced(t *testing.T) {
	bothWays(t, func(t *testing.T, o Options) {
		dir := filepath.Join(t.TempDir(), "logs")
		path := filepath.Join(dir, "deep", "app.log")
		o.Names = []string{path}
		r := begin(t, newLog(), o)
		r.expectMessages("app.log: does not exist yet; waiting for it")
		want := ""
		for i := range 3 {
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				text := fmt.Sprintf("%d\n", i)
				want += text
				write(t, path, text)
				r.expect(path, want)
			}
			rename(t, dir, fmt.Sprintf("%s.%d", dir, i))
		}
	})
}

func TestInodesThatAreUsedAgain(t *testing.T) {
	dir := t.TempDir()
	if info, err := os.Stat("/dev/shm"); err == nil && info.IsDir() {
		if shm, err := os.MkdirTemp("/dev/shm", "follow"); err == nil {
			t.Cleanup(func() { os.RemoveAll(shm) })
			dir = shm
		}
	}
	for _, dir := range []string{dir, t.TempDir()} {
		path := filepath.Join(dir, "app.log")
		state := filepath.Join(dir, "state")
		seen := map[lineage.ID]bool{}
		want, again := "", false
		l := newLog()
		for i := 0; i < 50 && !again; i++ {
			text := strings.Repeat(fmt.Sprintf("%d is here\n", i), 1+i%3)
			write(t, path, text)
			id, _, err := lookAt(path)
			if err != nil {
				t.Fatal(err)
			}
			again = seen[id]
			seen[id] = true
			want += text
			r := begin(t, l, Options{Names: []string{path}, State: state})
			r.expect(path, want)
			if err := r.end(); err != nil {
				t.Fatal(err)
			}
			os.Remove(path)
		}
		t.Logf("%s: an inode was used again: %v", dir, again)
	}
}

func TestFilesOfPatternsAreForgotten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.log")
	f, err := New(Options{Names: []string{filepath.Join(filepath.Dir(path), "*.log")}, Open: newLog().open})
	if err != nil {
		t.Fatal(err)
	}
	f.watcher = newWatcher(nil, f.notify)
	closed := 0
	r := &run{Follower: f, ctx: t.Context()}
	s := f.newSource(path, path)
	s.schedule.matched, s.out = true, &outlet{Sink: &Sink{WriteCloser: closing{&closed}}}
	f.sources[path] = s
	r.forget()
	if len(f.sources) != 1 {
		t.Error("forgotten at once")
	}
	f.sources[path].schedule.lost = time.Now().Add(-2 * vanish)
	r.forget()
	if len(f.sources) != 0 || closed != 1 {
		t.Errorf("%d files, closed %d times; want none, and 1", len(f.sources), closed)
	}
}

type closing struct{ n *int }

func (c closing) Write(p []byte) (int, error) { return 0, errors.New("written to") }
func (c closing) Close() error                { *c.n++; return nil }
