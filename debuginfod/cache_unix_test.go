//go:build unix

package debuginfod

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/access"
)

// Files that other users may have put into the cache must not be used, followed or waited for. The
// file must be fetched from the server, and be kept if that is safe.
func TestCacheHostileDir(t *testing.T) {
	t.Parallel()
	id := testID(1)
	good := elfFile(id, 5000)
	s := serve(t, has(map[string][]byte{debugPath(id): good}))
	must := func(t *testing.T, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	tests := []struct {
		name  string
		root  bool // only root can set up this case
		plant func(t *testing.T, dir, idDir, file string)
		want  string // the note
		kept  bool
	}{
		{"a link to a good file", false, func(t *testing.T, dir, idDir, file string) {
			must(t, os.Symlink(put(t, t.TempDir(), "elf", good, 0o400), file))
		}, "not used: not a regular file", true},
		{"a link to itself", false, func(t *testing.T, dir, idDir, file string) { must(t, os.Symlink(file, file)) }, "not used: not a regular file", true},
		{"a FIFO", false, func(t *testing.T, dir, idDir, file string) { must(t, syscall.Mkfifo(file, 0o600)) }, "not used: not a regular file", true},
		{"a directory", false, func(t *testing.T, dir, idDir, file string) { must(t, os.Mkdir(file, 0o700)) }, "not used: not a regular file", false},
		{"a device", true, func(t *testing.T, dir, idDir, file string) {
			if syscall.Mknod(file, syscall.S_IFCHR|0o600, 1<<8|5) != nil {
				t.Skip("devices cannot be made here")
			}
		}, "not used: not a regular file", true},
		{"a file that others can write to", false, func(t *testing.T, dir, idDir, file string) {
			put(t, dir, id.String()+"/debuginfo", good, 0o646)
		}, "not used: writable by its group or others (chmod go-w)", true},
		{"a file of another user", true, func(t *testing.T, dir, idDir, file string) {
			put(t, dir, id.String()+"/debuginfo", good, 0o400)
			must(t, os.Chown(file, 4242, 4242))
		}, "not used: owned by another user", true},
		{"a directory that others can write to", false, func(t *testing.T, dir, idDir, file string) { must(t, os.Chmod(idDir, 0o777)) },
			"not used: writable by its group or others (chmod go-w)", false},
		{"a directory of another user", true, func(t *testing.T, dir, idDir, file string) { must(t, os.Chown(idDir, 4242, 4242)) },
			"not used: owned by another user", false},
		{"a directory elsewhere", false, func(t *testing.T, dir, idDir, file string) {
			must(t, os.Remove(idDir))
			must(t, os.Symlink(t.TempDir(), idDir))
		}, "not used: not a directory", false},
		{"a cache that others can write to", false, func(t *testing.T, dir, idDir, file string) { must(t, os.Chmod(dir, 0o707)) },
			"not used: writable by its group or others (chmod go-w)", false},
		{"a cache of another user", true, func(t *testing.T, dir, idDir, file string) { must(t, os.Chown(dir, 4242, 4242)) },
			"not used: owned by another user", false},
		{"a FIFO in place of the cache", false, func(t *testing.T, dir, idDir, file string) {
			must(t, os.RemoveAll(dir))
			must(t, syscall.Mkfifo(dir, 0o600))
		}, "not used: not a directory", false},
		{"a link to a FIFO in place of the cache", false, func(t *testing.T, dir, idDir, file string) {
			must(t, os.RemoveAll(dir))
			must(t, syscall.Mkfifo(dir+".fifo", 0o600))
			must(t, os.Symlink(dir+".fifo", dir))
		}, "not used: not a directory", false},
		{"another build", false, func(t *testing.T, dir, idDir, file string) {
			put(t, dir, id.String()+"/debuginfo", elfFile(testID(2), 0), 0o400)
		}, "not used: another build, " + testID(2).String() + "; requested again", true},
		{"half a file", false, func(t *testing.T, dir, idDir, file string) {
			put(t, dir, id.String()+"/debuginfo", good[:3000], 0o400)
		}, "not used: incomplete ELF file: its section headers are missing; requested again", true},
		{"no ELF file", false, func(t *testing.T, dir, idDir, file string) {
			put(t, dir, id.String()+"/debuginfo", []byte("<html>"), 0o400)
		}, "not used: incomplete ELF file: ", true},
		{"a link in place of the lock", false, func(t *testing.T, dir, idDir, file string) {
			must(t, os.Symlink("/dev/tty", filepath.Join(dir, lockName)))
		}, "", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if tt.root && os.Geteuid() != 0 {
				t.Skip("only root can make it")
			}
			dir := filepath.Join(t.TempDir(), "cache")
			idDir := filepath.Join(dir, id.String())
			must(t, os.MkdirAll(idDir, 0o700))
			file := filepath.Join(idDir, "debuginfo")
			tt.plant(t, dir, idDir, file)

			if f, err := newCache(dir).find(t.Context(), buildid.Query{ID: id}, nil); err == nil && tt.want != "" {
				t.Errorf("offline: it was used as %s", f.Path())
				f.Close()
			}
			c := newClient(t, Options{CacheDir: dir}, s.URL)
			got, notes, err := find(t, c, buildid.Query{ID: id})
			if err != nil || !bytes.Equal(got, good) {
				t.Fatalf("got %d bytes, %v, %q; want the server's %d", len(got), err, notes, len(good))
			}
			if all := strings.Join(notes, "\n"); !strings.Contains(all, tt.want) {
				t.Errorf("got notes %q, want %q", notes, tt.want)
			}
			f, err := newCache(dir).find(t.Context(), buildid.Query{ID: id}, nil)
			if kept := err == nil; kept != tt.kept {
				t.Errorf("kept: got %v (%v), want %v", kept, err, tt.kept)
			}
			if err == nil {
				f.Close()
			}
			if got := leftovers(t, dir); got != nil {
				t.Errorf("left behind: %q", got)
			}
		})
	}
}

func TestCacheIsPrivate(t *testing.T) {
	t.Parallel()
	id := testID(1)
	modified := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	s := serve(t, sends(elfFile(id, 0), "Last-Modified", "Thu, 02 Jan 2020 03:04:05 GMT"))
	c := newClient(t, Options{}, s.URL)
	find(t, c, buildid.Query{ID: id})
	for name, want := range map[string]fs.FileMode{"": fs.ModeDir | 0o700, lockName: 0o600, id.String(): fs.ModeDir | 0o700, id.String() + "/debuginfo": 0o400} {
		info, err := os.Stat(filepath.Join(c.cache.dir, name))
		if err != nil || info.Mode() != want {
			t.Errorf("%q: got %v, %v; want %v", name, info.Mode(), err, want)
		}
		if strings.HasSuffix(name, "/debuginfo") && !info.ModTime().Equal(modified) {
			t.Errorf("got the time %v, want the server's %v", info.ModTime(), modified)
		}
	}
}

func TestInfoTellsWhatIsWrong(t *testing.T) {
	dir := t.TempDir()
	for i := range 3 {
		put(t, dir, testID(i).String()+"/debuginfo", elfFile(testID(i), 1000), 0o400)
	}
	put(t, dir, testID(1).String()+"/executable", nil, 0o644)
	put(t, dir, testID(1).String()+"/executable.aB3dE6", make([]byte, 500), 0o600)
	put(t, dir, maxUnusedFile, []byte("60"), 0o600)
	if err := os.Symlink("/", filepath.Join(dir, testID(2).String(), "source")); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(dir, testID(0).String()), 0o777); err != nil {
		t.Fatal(err)
	}
	got := newCache(dir).info()
	want := access.CacheInfo{Dir: dir, Exists: true, Mode: fs.ModeDir | 0o755, Files: 2, Misses: 1, Temporary: 1, Size: 2500,
		Clean: 24 * time.Hour, Unused: time.Minute, Miss: 10 * time.Minute, Problems: []string{
			`"` + testID(0).String() + `" is not used: writable by its group or others (chmod go-w)`,
			`"` + testID(2).String() + `/source" is not used: not a regular file`,
		}}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Error("-got +want:\n" + diff)
	}
	if got := newCache(filepath.Join(dir, "none")).info(); got.Exists || got.Problems != nil {
		t.Errorf("a cache that is not there: got %+v", got)
	}
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if got := newCache(dir).info(); len(got.Problems) != 1 || !strings.Contains(got.Problems[0], "chmod go-w") {
		t.Errorf("a cache that others can write to: got %q", got.Problems)
	}
	if got := newCache("").info(); got.Exists || len(got.Problems) != 1 {
		t.Errorf("no cache: got %+v", got)
	}
}

// A cache, or a directory in it, must not be used if its group or everybody can write to it. The
// right of others to read does not matter.
func TestModesOfTheCache(t *testing.T) {
	t.Parallel()
	id := testID(1)
	for mode, used := range map[fs.FileMode]bool{0o700: true, 0o750: true, 0o755: true, 0o711: true, 0o770: false, 0o775: false, 0o777: false, 0o707: false, 0o720: false} {
		for _, which := range []string{"", id.String()} {
			dir := t.TempDir()
			put(t, dir, id.String()+"/debuginfo", elfFile(id, 5000), 0o400)
			for path, mode := range map[string]fs.FileMode{dir: 0o700, filepath.Join(dir, which): mode} {
				if err := os.Chmod(path, mode); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(filepath.Join(dir, which), mode); err != nil {
				t.Fatal(err)
			}
			var notes []string
			f, err := newCache(dir).find(t.Context(), buildid.Query{ID: id, Kind: buildid.Alt}, func(a buildid.Attempt) { notes = append(notes, a.Reason) })
			if (err == nil) != used || !used && !strings.Contains(strings.Join(notes, "\n"), "writable by its group or others (chmod go-w)") {
				t.Errorf("%q of mode %o: got %v, %q; want it used: %v", which, mode, err, notes, used)
			}
			if err == nil {
				f.Close()
			}
		}
	}
}
