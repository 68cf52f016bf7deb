package buildid

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

var inside = cmp.AllowUnexported(folder{}, record{}, state{}, member{}, ID{})

// someFolders returns folders with all kinds of content.
func someFolders(t testing.TB) []*folder {
	id := mustParse(t, wanted)
	return []*folder{
		{rel: "", state: state{mtime: 1, inode: 2}, settled: true, folders: []string{"a", "b"}, files: []record{}},
		{rel: "a", state: state{mtime: -1, inode: 1 << 63}, folders: []string{}, files: []record{
			{name: "archive.zip", state: state{1 << 40, 1 << 60, 3}, content: archive, settled: true, members: []member{{"x/y", 7, id}, {"z", 8, mustParse(t, "ab")}}},
			{name: "elf", state: state{100, 5, 4}, content: elfFile, settled: true, id: id},
			{name: `odd\name`, state: state{100, 5, 4}, content: foreign},
			{name: "unread", content: unread},
		}},
		{rel: filepath.Join("a", "b"), folders: []string{}, files: []record{}},
	}
}

func TestAnIndexIsReadAsItWasWritten(t *testing.T) {
	want := someFolders(t)
	if runtime.GOOS == "windows" {
		want[1].files[2].name = "odd"
	}
	cache := filepath.Join(t.TempDir(), "a", "b")
	m := memory{cache}
	if _, err := m.load("/root"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("at first: %v", err)
	}
	if _, err := os.Stat(cache); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a load made the cache: %v", err)
	}
	if err := m.save("/root", want); err != nil {
		t.Fatal(err)
	}
	got, err := m.load("/root")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want, inside); diff != "" {
		t.Errorf("(-got +want):\n%s", diff)
	}
	if _, err := m.load("/other"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("of another root: %v", err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	dir := filepath.Join(cache, memoryFolder)
	for path, mode := range map[string]fs.FileMode{dir: fs.ModeDir | 0o700, filepath.Join(dir, memoryFile("/root")): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, mode)
		}
	}
}

func TestWhatCameLastIsRememberedAtTheEnd(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	putMany(t, dir, 10)
	o := SymbolPathOptions{[]string{dir}, cache}
	synctest.Test(t, func(t *testing.T) {
		later()
		first := OpenSymbolPath(o)
		has(t, first, mustParse(t, wanted))
		put(t, filepath.Join(dir, "new"), program{id: wanted}.bytes(t))
		time.Sleep(recheckMin)
		if !has(t, first, mustParse(t, wanted)) {
			t.Fatal("not found")
		}
		if err := first.Close(); err != nil {
			t.Error(err)
		}
		second := OpenSymbolPath(o)
		if !has(t, second, mustParse(t, wanted)) || second.opens.Load() != 0 {
			t.Errorf("%d files were opened, want none", second.opens.Load())
		}
	})
}

func TestADamagedIndexIsWrittenAnew(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	ids := putMany(t, dir, 20)
	o := SymbolPathOptions{[]string{dir}, cache}
	first := OpenSymbolPath(o)
	has(t, first, ids[0])
	path := filepath.Join(cache, memoryFolder, memoryFile(dir))
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	replace := func(content []byte) func(t *testing.T) {
		return func(t *testing.T) {
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	instead := func(put func() error) func(t *testing.T) {
		return func(t *testing.T) {
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
			if err := put(); err != nil {
				t.Skip(err)
			}
		}
	}
	flipped := bytes.Clone(good)
	flipped[len(flipped)/2] ^= 1
	elsewhere := filepath.Join(t.TempDir(), "index")
	put(t, elsewhere, good)
	tests := []struct {
		name  string
		do    func(t *testing.T)
		opens int64
	}{
		{"as it is", func(*testing.T) {}, 0},
		{"gone", instead(func() error { return nil }), 40},
		{"empty", replace(nil), 40},
		{"half", replace(good[:len(good)/2]), 40},
		{"one bit", replace(flipped), 40},
		{"more behind it", replace(append(bytes.Clone(good), 0)), 40},
		{"another version", replace(resum(bytes.Replace(good, []byte("path 1"), []byte("path 2"), 1))), 40},
		{"of another root", replace(resum(bytes.Replace(good, []byte(dir), bytes.Repeat([]byte("x"), len(dir)), 1))), 40},
		{"a link", instead(func() error { return os.Symlink(elsewhere, path) }), 40},
		{"a folder", instead(func() error { return os.Mkdir(path, 0o700) }), 40},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkNoFileStaysOpen(t)
			if runtime.GOOS == "windows" && tt.name == "a link" {
				t.Skip("followed here")
			}
			tt.do(t)
			p := OpenSymbolPath(o)
			for _, id := range ids {
				if !has(t, p, id) {
					t.Errorf("%s is not found", id)
				}
			}
			if got := p.opens.Load(); got != tt.opens {
				t.Errorf("%d files were opened, want %d", got, tt.opens)
			}
			os.RemoveAll(path)
			replace(good)(t)
		})
	}
	if got, err := os.ReadFile(elsewhere); err != nil || !bytes.Equal(got, good) {
		t.Errorf("what the link led to has changed: %v", err)
	}
}

// resum gives data a matching checksum.
func resum(data []byte) []byte {
	body := data[:len(data)-4]
	return binary.LittleEndian.AppendUint32(bytes.Clone(body), castagnoli(body))
}

func TestACacheThatOthersMayChangeIsNotUsed(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("other rights")
	}
	dir := t.TempDir()
	ids := putMany(t, dir, 3)
	tests := []struct {
		name string
		do   func(cache string) error
	}{
		{"the cache is everybody's", func(cache string) error { return os.Chmod(cache, 0o777) }},
		{"its folder is the group's", func(cache string) error {
			return errors.Join(os.Mkdir(filepath.Join(cache, memoryFolder), 0o700), os.Chmod(filepath.Join(cache, memoryFolder), 0o770))
		}},
		{"its folder is a link", func(cache string) error {
			return errors.Join(os.Mkdir(filepath.Join(cache, "x"), 0o700), os.Symlink("x", filepath.Join(cache, memoryFolder)))
		}},
		{"its folder is a file", func(cache string) error { return os.WriteFile(filepath.Join(cache, memoryFolder), nil, 0o600) }},
		{"the cache is a file", func(cache string) error { return errors.Join(os.Remove(cache), os.WriteFile(cache, nil, 0o600)) }},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			cache := filepath.Join(t.TempDir(), "cache")
			if err := errors.Join(os.Mkdir(cache, 0o700), tt.do(cache)); err != nil {
				t.Fatal(err)
			}
			for range 2 {
				p := OpenSymbolPath(SymbolPathOptions{[]string{dir}, cache})
				if !has(t, p, ids[0]) || p.opens.Load() != 6 {
					t.Errorf("%d files were opened, want 6", p.opens.Load())
				}
			}
			filepath.WalkDir(cache, func(path string, d fs.DirEntry, err error) error {
				if err == nil && strings.HasSuffix(path, memorySuffix) {
					t.Errorf("%s was written", path)
				}
				return nil
			})
		})
	}
}

func TestTheCacheDoesNotGrowWithoutEnd(t *testing.T) {
	m := memory{t.TempDir()}
	dir, ok := m.folder(true)
	if !ok {
		t.Fatal("no memory")
	}
	old := time.Now().Add(-2 * time.Hour)
	put(t, filepath.Join(dir, tempPrefix+"1"), []byte("left by a process that was killed"))
	if err := os.Chtimes(filepath.Join(dir, tempPrefix+"1"), old, old); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(dir, tempPrefix+"2"), []byte("of a process that writes"))
	put(t, filepath.Join(dir, "other"), nil)
	for i := range rememberedMax + 10 {
		path := filepath.Join(dir, memoryFile(string(rune('a'+i))))
		put(t, path, nil)
		at := old.Add(-time.Duration(i) * time.Minute)
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := m.save("/root", nil); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if len(names) != rememberedMax+2 || slices.Contains(names, tempPrefix+"1") || !slices.Contains(names, "other") ||
		!slices.Contains(names, memoryFile("/root")) || !slices.Contains(names, memoryFile("a")) {
		t.Errorf("%d files are left: %q", len(names), names)
	}
}

func FuzzIndexFile(f *testing.F) {
	const root = "/root"
	f.Add(encodeFolders(root, someFolders(f)))
	f.Add(encodeFolders(root, nil))
	f.Add(encodeFolders(root, []*folder{{rel: "../up"}, {files: []record{{name: "../x"}, {name: "y\x00"}}}}))
	f.Add(encodeFolders(root, []*folder{{rel: "nul\x00", files: []record{{name: "x"}}}}))
	f.Add(resum(append([]byte(memoryMagic+"\x05/root\xff\xff\xff\xff\xff\xff\xff\xff\x7f"), 0, 0, 0, 0)))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Watch(t, data)()
		if len(data) >= 4 {
			// without a matching checksum, the decoder would reject all inputs of the fuzzer
			data = resum(data)
		}
		folders, err := decodeFolders(data, root)
		if err != nil {
			if !errors.Is(err, errBadMemory) {
				t.Error(err)
			}
			return
		}
		for _, d := range folders {
			for i := range d.files {
				path := filepath.Join("/root", d.rel, d.files[i].name)
				if rel, err := filepath.Rel("/root", path); err != nil || !filepath.IsLocal(rel) || strings.ContainsRune(path, 0) {
					t.Errorf("%q leads out", path)
				}
				if d.file(d.files[i].name) == nil {
					t.Errorf("%q is not found", d.files[i].name)
				}
			}
		}
		again, err := decodeFolders(encodeFolders(root, folders), root)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(again, folders, inside); diff != "" {
			t.Errorf("written again (-got +want):\n%s", diff)
		}
	})
}
