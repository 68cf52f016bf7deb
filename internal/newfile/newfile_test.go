package newfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv("NEWFILE_TEST_DIR"); dir != "" {
		writeForEver(dir)
	}
	os.Exit(m.Run())
}

// kinds are the ways to make a file.
var kinds = map[string]func(*os.Root, string) (*File, error){
	"named": named,
	"unnamed": func(root *os.Root, prefix string) (*File, error) {
		if f := unnamed(root, prefix); f != nil {
			return f, nil
		}
		return nil, errors.ErrUnsupported
	},
}

// each runs test for each kind of file that the file system supports.
func each(t *testing.T, test func(t *testing.T, root *os.Root, create func() *File)) {
	for name, kind := range kinds {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "d"), 0o700); err != nil {
				t.Fatal(err)
			}
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			test(t, root, func() *File {
				f, err := kind(root, "d/new-")
				if errors.Is(err, errors.ErrUnsupported) {
					t.Skip("files without a name cannot be made here")
				}
				if err != nil {
					t.Fatal(err)
				}
				return f
			})
		})
	}
}

func names(t *testing.T, root *os.Root) (all []string) {
	t.Helper()
	entries, err := fs.ReadDir(root.FS(), "d")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}

func TestPublishedFilesAreWhole(t *testing.T) {
	then := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	each(t, func(t *testing.T, root *os.Root, create func() *File) {
		for _, text := range []string{"first", "the second one", ""} { // each replaces the one before
			f := create()
			io.WriteString(f, text)
			if slices.Contains(names(t, root), "file") != (text != "first") {
				t.Errorf("before %q is published: got %q", text, names(t, root))
			}
			if err := errors.Join(f.Chmod(0o400), f.Chtimes(time.Now(), then), f.Publish("d/file")); err != nil {
				t.Fatal(err)
			}
			info, err := root.Stat("d/file")
			if err != nil || info.Mode() != 0o400 || !info.ModTime().Equal(then) {
				t.Errorf("%q: got %v of %v, %v", text, info.Mode(), info.ModTime(), err)
			}
			f.Discard()
			if got, err := root.ReadFile("d/file"); err != nil || string(got) != text {
				t.Errorf("got %q, %v; want %q", got, err, text)
			}
			if got := names(t, root); !slices.Equal(got, []string{"file"}) {
				t.Errorf("the directory holds %q", got)
			}
		}
	})
}

func TestDiscardedFilesLeaveNothing(t *testing.T) {
	each(t, func(t *testing.T, root *os.Root, create func() *File) {
		f := create()
		io.WriteString(f, "text")
		f.Discard()
		if got := names(t, root); got != nil {
			t.Errorf("the directory holds %q", got)
		}
	})
}

// If Publish fails because the name belongs to a directory, the directory must stay. Publish can
// then be called again with another name.
func TestAnErrorOfPublishLeavesNothing(t *testing.T) {
	each(t, func(t *testing.T, root *os.Root, create func() *File) {
		f := create()
		io.WriteString(f, "text")
		if err := root.MkdirAll("d/file/sub", 0o700); err != nil {
			t.Fatal(err)
		}
		if err := f.Publish("d/file"); err == nil {
			t.Error("a directory was replaced")
		}
		if err := f.Publish("d/other"); err != nil {
			t.Error(err)
		}
		f.Discard()
		if got := names(t, root); !slices.Equal(got, []string{"file", "other"}) {
			t.Errorf("the directory holds %q", got)
		}
	})
}

func TestALinkInTheFilesPlaceIsReplacedNotFollowed(t *testing.T) {
	each(t, func(t *testing.T, root *os.Root, create func() *File) {
		if err := errors.Join(root.WriteFile("canary", []byte("canary"), 0o600), root.Symlink("../canary", "d/file")); err != nil {
			t.Fatal(err)
		}
		f := create()
		io.WriteString(f, "text")
		err := f.Publish("d/file")
		f.Discard()
		info, e := root.Lstat("d/file")
		canary, _ := root.ReadFile("canary")
		if err != nil || e != nil || !info.Mode().IsRegular() || string(canary) != "canary" {
			t.Errorf("got %v, %v, %v; the canary holds %q", err, info, e, canary)
		}
	})
}

// If the directory is removed before a file is published, Publish must fail. It must succeed after
// the directory was made again.
func TestADirectoryThatIsMadeAgain(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	root.Mkdir("d", 0o700)
	f := unnamed(root, "d/new-")
	if f == nil {
		t.Skip("files without a name cannot be made here")
	}
	defer f.Discard()
	if err := root.Remove("d"); err != nil {
		t.Fatal(err)
	}
	if err := f.Publish("d/file"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without the directory: got %v", err)
	}
	root.Mkdir("d", 0o700)
	if err := f.Publish("d/file"); err != nil {
		t.Error(err)
	}
}

// body returns the content of the n-th file.
func body(n int) []byte { return bytes.Repeat([]byte{byte('a' + n)}, 1<<20) }

// writeForEver publishes files until it is killed. It prints b when it begins a file and e when it
// ends one.
func writeForEver(dir string) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	for i := 0; ; i++ {
		f, err := Create(root, "new-")
		if err != nil {
			panic(err)
		}
		fmt.Print("b")
		for part := range slices.Chunk(body(i%4), 64<<10) {
			f.Write(part)
		}
		if err := f.Publish(fmt.Sprint("file", i%4)); err != nil {
			panic(err)
		}
		f.Discard()
		fmt.Print("e")
	}
}

// A process that is killed while it writes must leave only complete files under their names. It
// must leave no other file if the file system has files without a name.
func TestKilledWritersLeaveNothing(t *testing.T) {
	kills := 30
	if os.Getenv("TEST_LONG") == "1" {
		kills = 1000
	}
	dir := t.TempDir()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	midway := 0
	for range kills {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "NEWFILE_TEST_DIR="+dir)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		said := make([]byte, 1)
		io.ReadFull(out, said)
		time.Sleep(rand.N(10 * time.Millisecond))
		cmd.Process.Kill()
		rest, _ := io.ReadAll(out)
		cmd.Wait()
		if said = append(said, rest...); said[len(said)-1] == 'b' {
			midway++
		}
	}
	if midway == 0 {
		t.Errorf("none of %d kills came while a file was being written", kills)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := unnamed(root, "new-")
	if f != nil {
		f.Discard()
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		got, err := os.ReadFile(filepath.Join(dir, e.Name()))
		var n int
		if _, e := fmt.Sscanf(e.Name(), "file%d", &n); e == nil {
			if err != nil || !bytes.Equal(got, body(n)) {
				t.Errorf("file%d: %d bytes, %v", n, len(got), err)
			}
			continue
		}
		// Between the link and the renaming that replaces an older file, a whole file has a
		// temporary name.
		if whole := len(got) == 1<<20 && bytes.Equal(got, body(int(got[0]-'a'))); f != nil && !whole || !strings.HasPrefix(e.Name(), "new-") {
			t.Errorf("left behind: %s of %d bytes", e.Name(), len(got))
		}
	}
	t.Logf("%d of %d kills came while a file was being written; %d files", midway, kills, len(entries))
}
