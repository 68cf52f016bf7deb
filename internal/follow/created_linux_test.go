package follow

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fsnotify/fsnotify"
	"golang.org/x/sys/unix"
)

func TestNewFilesOfANameAreCounted(t *testing.T) {
	for name, test := range map[string]struct {
		steps []func(path string) error // the event of each step arrives before the next step
		want  int64
	}{
		"removed and made again": {want: 1, steps: []func(string) error{
			os.Remove,
			make1,
		}},
		"rotated": {want: 1, steps: []func(string) error{
			func(path string) error { return os.Rename(path, path+".1") },
			make1,
		}},
		"replaced": {want: 1, steps: []func(string) error{
			func(path string) error { return make1(path + ".new") },
			func(path string) error { return os.Rename(path+".new", path) },
		}},
		"renamed away and back": {want: 0, steps: []func(string) error{
			func(path string) error { return os.Rename(path, path+".away") },
			func(path string) error { return os.Rename(path+".away", path) },
		}},
		"renamed away and back, and another in between": {want: 1, steps: []func(string) error{
			func(path string) error { return os.Rename(path, path+".away") },
			make1,
			os.Remove,
			func(path string) error { return os.Rename(path+".away", path) },
		}},
		"renamed away and back at once": {want: 0, steps: []func(string) error{
			func(path string) error {
				if err := os.Rename(path, path+".away"); err != nil {
					return err
				}
				return os.Rename(path+".away", path)
			},
		}},
		"a folder in its place": {want: 0, steps: []func(string) error{
			os.Remove,
			func(path string) error { return os.Mkdir(path, 0o777) },
			os.Remove,
		}},
		"a FIFO in its place": {want: 0, steps: []func(string) error{
			os.Remove,
			func(path string) error { return unix.Mkfifo(path, 0o666) },
			os.Remove,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			write(t, path, "one\n")
			w := newWatcher(fsnotify.NewWatcher, func(e Event) { t.Error(e.Message) })
			defer w.Close()
			s, last := new(source), new(source)
			at := chain(path)
			sentinel := place{at[len(at)-1].dir, "sentinel"}
			w.watch(s, at)
			w.watch(last, []place{sentinel})
			for i, step := range test.steps {
				if err := step(path); err != nil {
					t.Fatal(err)
				}
				// events arrive in order, so the sentinel's event is the last
				write(t, filepath.Join(sentinel.dir, sentinel.name), "")
				for last.arrivals.created.Load() <= int64(i) {
					<-w.wake
				}
				if err := os.Remove(filepath.Join(sentinel.dir, sentinel.name)); err != nil {
					t.Fatal(err)
				}
			}
			if got := s.arrivals.created.Load(); got != test.want {
				t.Errorf("got %d new files, want %d", got, test.want)
			}
		})
	}
}

func make1(path string) error { return os.WriteFile(path, []byte("two\n"), 0o666) }
