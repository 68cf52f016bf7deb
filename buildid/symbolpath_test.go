package buildid

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// settle sets the times of all files and folders below dir to the past, as if they had not changed
// for a while.
func settle(t testing.TB, dir string) {
	t.Helper()
	past := time.Now().Add(-time.Hour)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type()&fs.ModeSymlink == 0 {
			err = os.Chtimes(path, past, past)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// later advances the fake clock of the synctest bubble to the year 2100, so that every real file is
// old.
func later() { time.Sleep(time.Until(time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))) }

// putMany writes n ELF files and as many texts into folders below dir, and returns the IDs.
func putMany(t testing.TB, dir string, n int) []ID {
	t.Helper()
	var ids []ID
	for i := range n {
		hex := fmt.Sprintf("%08x", uint32(0xabc00000)+uint32(i))
		ids = append(ids, mustParse(t, hex))
		folder := filepath.Join(dir, fmt.Sprint("d", i%37), fmt.Sprint("e", i%5))
		put(t, filepath.Join(folder, hex), program{id: hex}.bytes(t))
		put(t, filepath.Join(folder, hex+".c"), []byte("int main;"))
	}
	settle(t, dir)
	return ids
}

// has reports whether p finds id.
func has(t testing.TB, p *SymbolPath, id ID) bool {
	t.Helper()
	f, err := p.Find(t.Context(), Query{ID: id}, nil)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	if f != nil {
		f.Close()
	}
	return f != nil
}

func TestASecondStartOpensOnlyWhatChanged(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("times differ")
	}
	dir, cache := t.TempDir(), filepath.Join(t.TempDir(), "cache")
	ids := putMany(t, dir, 300)
	o := SymbolPathOptions{Paths: []string{dir}, CacheDir: cache}
	start := func() *SymbolPath {
		p := OpenSymbolPath(o)
		for _, id := range ids {
			if !has(t, p, id) {
				t.Errorf("%s is not found", id)
			}
		}
		return p
	}
	steps := []struct {
		name string
		do   func()
		want int64
	}{
		{"first", func() {}, 600},
		{"second", func() {}, 0},
		{"one file more", func() {
			put(t, filepath.Join(dir, "d1", "new"), program{id: wanted}.bytes(t))
			settle(t, filepath.Join(dir, "d1", "new"))
			ids = append(ids, mustParse(t, wanted))
		}, 1},
		{"nothing new", func() {}, 0},
		{"one file of the same size written again in its place", func() {
			put(t, filepath.Join(dir, "d1", "new"), program{id: another}.bytes(t))
			settle(t, filepath.Join(dir, "d1", "new"))
			ids[len(ids)-1] = mustParse(t, another)
		}, 1},
		{"one file less", func() {
			os.Remove(filepath.Join(dir, "d1", "new"))
			ids = ids[:len(ids)-1]
		}, 0},
		{"a young file", func() {
			put(t, filepath.Join(dir, "d1", "young"), program{id: another}.bytes(t))
			ids = append(ids, mustParse(t, another))
		}, 1},
		{"the young file may have changed since", func() {}, 1},
	}
	for _, step := range steps {
		step.do()
		if got := start().opens.Load(); got != step.want {
			t.Errorf("%s: %d files were opened, want %d", step.name, got, step.want)
		}
	}
}

func TestAKnownFileIsFoundWithoutALook(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("times differ")
	}
	dir, cache := t.TempDir(), t.TempDir()
	whole := func(id string) []byte { return program{id: id, sections: []string{".debug_info"}}.bytes(t) }
	put(t, filepath.Join(dir, "x"), whole(wanted))
	put(t, filepath.Join(dir, "y"), whole("aaaa"))
	put(t, filepath.Join(dir, "z"), program{id: "bbbb"}.bytes(t))
	settle(t, dir)
	o := SymbolPathOptions{[]string{dir, filepath.Join(dir, "none")}, cache}
	has(t, OpenSymbolPath(o), mustParse(t, wanted))
	// x is now another build, but its folder is unchanged.
	put(t, filepath.Join(dir, "x"), whole(another))
	tests := []struct {
		id      string
		found   bool
		looked  bool
		because string
	}{
		{"aaaa", true, false, "it is known"},
		{another, true, true, "it is not known"},
		{wanted, false, true, "it is another build"},
		{"bbbb", true, true, "there may be a better one"},
		{"cccc", false, true, "it is not there"},
	}
	for _, tt := range tests {
		// each finder starts with the index that the first process left
		left := memory{t.TempDir()}
		folder, _ := left.folder(true)
		put(t, filepath.Join(folder, memoryFile(dir)), readFile(t, filepath.Join(cache, memoryFolder, memoryFile(dir))))
		p := OpenSymbolPath(SymbolPathOptions{o.Paths, left.cache})
		found := has(t, p, mustParse(t, tt.id))
		if looked := !p.deep.ended.IsZero(); found != tt.found || looked != tt.looked {
			t.Errorf("%s: found %v, looked %v; want %v, %v: %s", tt.id, found, looked, tt.found, tt.looked, tt.because)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestWhatComesLaterIsFound(t *testing.T) {
	id := mustParse(t, wanted)
	tests := []struct {
		name string
		do   func(t *testing.T, root string)
	}{
		{"a file in a known folder", func(t *testing.T, root string) { put(t, filepath.Join(root, "old", "z"), program{id: wanted}.bytes(t)) }},
		{"a folder", func(t *testing.T, root string) {
			put(t, filepath.Join(root, "a", "b", "z"), program{id: wanted}.bytes(t))
		}},
		{"a file in the place of another", func(t *testing.T, root string) {
			put(t, filepath.Join(root, "new"), program{id: wanted}.bytes(t))
			if err := os.Rename(filepath.Join(root, "new"), filepath.Join(root, "old", "x")); err != nil {
				t.Fatal(err)
			}
		}},
		{"other content in a file", func(t *testing.T, root string) { put(t, filepath.Join(root, "old", "x"), program{id: wanted}.bytes(t)) }},
		{"the target of a link", func(t *testing.T, root string) {
			put(t, filepath.Join(root, "outside"), program{id: wanted}.bytes(t))
			if err := os.Symlink(filepath.Join(root, "outside"), filepath.Join(root, "old", "link")); err != nil {
				t.Skip(err)
			}
		}},
		{"the root itself", func(t *testing.T, root string) {
			if err := os.RemoveAll(root); err != nil {
				t.Fatal(err)
			}
			put(t, filepath.Join(root, "z"), program{id: wanted}.bytes(t))
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "root")
			put(t, filepath.Join(root, "old", "x"), program{id: "aa00"}.bytes(t))
			put(t, filepath.Join(root, "old", "y"), program{id: "aa01"}.bytes(t))
			settle(t, root)
			synctest.Test(t, func(t *testing.T) {
				later()
				p := newSymbolPath(root)
				if has(t, p, id) {
					t.Fatal("found too early")
				}
				tt.do(t, root)
				if has(t, p, id) {
					t.Error("looked for again at once")
				}
				time.Sleep(recheckMin)
				// the pause before the next walk is a multiple of the last walk's duration, which
				// is 0 with the fake clock
				if !has(t, p, id) {
					t.Error("not found")
				}
			})
		})
	}
}

func TestABetterFileThatComesLaterIsFound(t *testing.T) {
	root := t.TempDir()
	put(t, filepath.Join(root, "a"), program{id: wanted, sections: []string{".text"}}.bytes(t))
	settle(t, root)
	synctest.Test(t, func(t *testing.T) {
		checkNoFileStaysOpen(t)
		later()
		p := newSymbolPath(root)
		var got []string
		for _, now := range []string{"", "symbols", "debug"} {
			if now != "" {
				put(t, filepath.Join(root, now), program{id: wanted, sections: []string{map[string]string{"symbols": ".symtab", "debug": ".debug_info"}[now]}}.bytes(t))
			}
			time.Sleep(recheckMin)
			f, err := p.Find(t.Context(), Query{ID: mustParse(t, wanted)}, nil)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, filepath.Base(f.Path()))
			f.Close()
		}
		if diff := cmp.Diff(got, []string{"a", "symbols", "debug"}); diff != "" {
			t.Errorf("found (-got +want):\n%s", diff)
		}
	})
}

func TestALookForNewFilesReadsOnlyThese(t *testing.T) {
	dir := t.TempDir()
	putMany(t, dir, 200)
	synctest.Test(t, func(t *testing.T) {
		later()
		p := newSymbolPath(dir)
		id := mustParse(t, wanted)
		has(t, p, id)
		before := p.opens.Load()
		put(t, filepath.Join(dir, "d1", "new"), program{id: "00aa"}.bytes(t))
		put(t, filepath.Join(dir, "d1", "f", "new"), program{id: wanted}.bytes(t))
		for range 3 {
			time.Sleep(recheckMin)
			if !has(t, p, id) {
				t.Error("not found")
			}
		}
		if got := p.opens.Load() - before; before != 400 || got != 2 {
			t.Errorf("%d files were opened for two new ones, %d at first", got, before)
		}
	})
}

func TestLooksTakeAPartOfTheTimeOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := pace{time.Now(), 200 * time.Millisecond}
		var got []bool
		for _, after := range []time.Duration{0, recheckMin, 8 * time.Second, 1 * time.Second} {
			time.Sleep(after)
			got = append(got, p.due(false), p.due(true))
		}
		want := []bool{false, false, false, true, false, true, true, true}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("due, due when called for (-got +want):\n%s", diff)
		}
	})
}

func TestACancelledLookTellsNothingOfWhatIsOnlyRemembered(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	put(t, filepath.Join(dir, "sub", "x"), program{id: wanted}.bytes(t))
	put(t, filepath.Join(dir, "y"), program{id: another}.bytes(t))
	settle(t, dir)
	has(t, OpenSymbolPath(SymbolPathOptions{[]string{filepath.Join(dir, "sub")}, cache}), mustParse(t, wanted))
	p := OpenSymbolPath(SymbolPathOptions{[]string{filepath.Join(dir, "sub"), filepath.Join(dir, "y")}, cache})
	p.index.Store(p.remembered())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var told []Attempt
	_, err := p.Find(ctx, Query{ID: mustParse(t, "00")}, func(a Attempt) { told = append(told, a) })
	if !errors.Is(err, context.Canceled) || len(told) != 0 {
		t.Errorf("got %v, told %v", err, told)
	}
}

func TestTheFirstWalkDoesNotDelayTheNextLook(t *testing.T) {
	dir := t.TempDir()
	putMany(t, dir, 20)
	synctest.Test(t, func(t *testing.T) {
		later()
		p := newSymbolPath(dir)
		has(t, p, mustParse(t, wanted))
		if p.deep.took != 0 || p.shallow.took != 0 || p.deep.ended.IsZero() {
			t.Errorf("after the first walk: %+v, %+v", p.deep, p.shallow)
		}
		p.deep.took = time.Hour
		put(t, filepath.Join(dir, "d1", "new"), program{id: wanted}.bytes(t))
		time.Sleep(recheckMin)
		if !has(t, p, mustParse(t, wanted)) {
			t.Error("a look at the folders waited for one at the files")
		}
	})
}

func TestAnIndexedFileThatIsAnotherBuildIsIndexedAgain(t *testing.T) {
	root := t.TempDir()
	path := filepath.Join(root, "x")
	put(t, path, program{id: wanted}.bytes(t))
	settle(t, root)
	synctest.Test(t, func(t *testing.T) {
		later()
		p := newSymbolPath(root)
		if !has(t, p, mustParse(t, wanted)) {
			t.Fatal("not found")
		}
		p.deep.took = time.Hour // the folder is examined again although that is expensive
		put(t, path, program{id: another}.bytes(t))
		time.Sleep(recheckMin)
		if has(t, p, mustParse(t, wanted)) || !has(t, p, mustParse(t, another)) {
			t.Error("the index is as before")
		}
	})
}

// readAllIDs returns the paths of all IDs below dirs, found by reading each file.
func readAllIDs(t *testing.T, dirs ...string) []string {
	t.Helper()
	var all []string
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return nil
			}
			if f, size, err := openRegular(path); err == nil {
				if id, err := Read(f, size); err == nil {
					all = append(all, id.String()+" "+path)
				}
				f.Close()
			}
			return nil
		})
	}
	slices.Sort(all)
	return all
}

func indexed(x *pathIndex) []string {
	var all []string
	for _, p := range x.places {
		all = append(all, p.id.String()+" "+p.shown())
	}
	slices.Sort(all)
	return all
}

// After any changes of a tree, the updated index, an index loaded from disk and a new index must
// all describe its content.
func TestAnIndexIsWhatIsThere(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	root, cache := t.TempDir(), t.TempDir()
	name := func() string {
		parts := make([]string, 1+random.IntN(3))
		for i := range parts {
			parts[i] = string(rune('a' + random.IntN(4)))
		}
		return filepath.Join(root, filepath.Join(parts...))
	}
	at := time.Now().Add(-24 * time.Hour)
	recent := time.Now().Add(-time.Hour)
	write := func(path string) {
		content := []byte("text")
		if random.IntN(3) > 0 {
			content = program{id: fmt.Sprintf("%04x", random.IntN(1<<16))}.bytes(t)
		}
		if os.MkdirAll(filepath.Dir(path), 0o777) != nil || os.WriteFile(path, content, 0o666) != nil {
			return
		}
		at = at.Add(time.Second)
		os.Chtimes(path, at, at)
	}
	// The clock of a file system ticks slowly, so each change of a folder gets its own time.
	age := func() {
		filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				if info, err := d.Info(); err == nil && info.ModTime().After(recent) {
					at = at.Add(time.Second)
					os.Chtimes(path, at, at)
				}
			}
			return nil
		})
	}
	synctest.Test(t, func(t *testing.T) {
		later()
		kept := newSymbolPath(root)
		for step := range 300 {
			for range 1 + random.IntN(5) {
				switch path := name(); random.IntN(6) {
				case 0:
					os.RemoveAll(path)
				case 1:
					os.Rename(path, name())
				case 2:
					os.Symlink(name(), path)
				default:
					write(path)
				}
			}
			age()
			want := readAllIDs(t, root)
			time.Sleep(recheckMin)
			for which, p := range []*SymbolPath{kept, OpenSymbolPath(SymbolPathOptions{[]string{root}, cache}), newSymbolPath(root)} {
				has(t, p, mustParse(t, "ff"))
				if diff := cmp.Diff(indexed(p.index.Load()), want); diff != "" {
					t.Fatalf("step %d, index %d (-got +want):\n%s", step, which, diff)
				}
			}
		}
	})
}

func TestManyLookWhileFilesCome(t *testing.T) {
	checkNoFileStaysOpen(t)
	root, cache := t.TempDir(), t.TempDir()
	var all sync.WaitGroup
	for range 4 {
		p := OpenSymbolPath(SymbolPathOptions{[]string{root}, cache})
		for range 4 {
			all.Go(func() {
				for i := range 60 {
					f, err := p.Find(t.Context(), Query{ID: mustParse(t, fmt.Sprintf("%04x", i))}, nil)
					if f != nil {
						f.Close()
					} else if !errors.Is(err, fs.ErrNotExist) {
						t.Error(err)
					}
				}
			})
		}
	}
	for i := range 60 {
		put(t, filepath.Join(root, fmt.Sprint(i%7), fmt.Sprint(i)), program{id: fmt.Sprintf("%04x", i)}.bytes(t))
	}
	all.Wait()
	entries, err := os.ReadDir(filepath.Join(cache, memoryFolder))
	if err != nil || len(entries) != 1 || !strings.HasSuffix(entries[0].Name(), memorySuffix) {
		t.Errorf("left in the cache: %v, %v", entries, err)
	}
}

func TestASymbolPathSaysWhatItsFilesAre(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "other"), program{id: another}.bytes(t))
	put(t, filepath.Join(dir, "none"), program{}.bytes(t))
	put(t, filepath.Join(dir, "text"), []byte("text"))
	var paths []string
	for _, name := range []string{"other", "none", "text", "missing"} {
		paths = append(paths, filepath.Join(dir, name))
	}
	_, told, err := find(t, newSymbolPath(paths...), Query{ID: mustParse(t, wanted)})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	want := []string{
		"missing: no such file",
		"other: its build ID is " + another + ", not " + wanted,
		"none: the file has no build ID",
		"text: not an ELF file",
	}
	if diff := cmp.Diff(below(dir, told), want); diff != "" {
		t.Errorf("told (-got +want):\n%s", diff)
	}
}
