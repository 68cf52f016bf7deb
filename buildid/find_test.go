package buildid

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	wanted  = "abcdef0123456789abcdef0123456789abcdef01"
	another = "abcdef0123456789abcdef0123456789abcdef02"
)

type finder interface {
	Find(ctx context.Context, q Query, note func(Attempt)) (*File, error)
}

// A finderCase makes a finder for an empty folder. place is the path at which the finder looks for
// the file with the wanted ID.
type finderCase struct {
	name  string
	place string // below the folder
	new   func(dir string) finder
	// paths is set if the finder searches by path, so that Attempts name the path and describe the
	// file there; otherwise they name the folder.
	paths bool
	// unverified is set if the finder accepts a file without a build ID, because of its path.
	unverified bool
}

var finderCases = []finderCase{
	{"tree", ".build-id/ab/" + wanted[2:] + ".debug", func(dir string) finder { return NewTree(dir) }, true, true},
	{"tree named by its .build-id", ".build-id/ab/" + wanted[2:] + ".debug", func(dir string) finder { return NewTree(filepath.Join(dir, ".build-id")) }, true, true},
	{"ids.txt", "lib/x/libx.so", func(dir string) finder { return listed(dir, wanted+" lib/x/libx.so\n") }, true, false},
	{"tree without .build-id", "ab/" + wanted[2:] + ".debug", func(dir string) finder { return NewTree(dir) }, true, true},
	{"symbol path", "lib/x/libx.so", func(dir string) finder { return newSymbolPath(dir) }, false, false},
	{"symbol path of a file", "lib/x/libx.so", func(dir string) finder { return newSymbolPath(filepath.Join(dir, "lib/x/libx.so")) }, false, false},
	{"module path", "lib/x/libx.so", func(string) finder { return ModulePath{} }, true, false},
}

// find calls a finder. It returns the file, which is closed at the end of the test, and the
// Attempts.
func find(t *testing.T, f finder, q Query) (*File, []Attempt, error) {
	t.Helper()
	var told []Attempt
	file, err := f.Find(t.Context(), q, func(a Attempt) { told = append(told, a) })
	if (file == nil) == (err == nil) {
		t.Fatalf("Find = %v, %v: want one of both", file, err)
	}
	findWhole(t, f, q, file, told, err)
	if file != nil {
		t.Cleanup(func() { file.Close() })
	}
	return file, told, err
}

// findWhole checks that a query for whole files finds the same file, and the same reasons for
// misses.
func findWhole(t *testing.T, f finder, q Query, want *File, wantTold []Attempt, wantErr error) {
	t.Helper()
	if t.Context().Err() != nil {
		return
	}
	var told []Attempt
	q.Whole = 32 << 10
	file, err := f.Find(t.Context(), q, func(a Attempt) { told = append(told, a) })
	if (err == nil) != (wantErr == nil) || err != nil && err.Error() != wantErr.Error() {
		t.Fatalf("Find of a whole file: %v, want %v", err, wantErr)
	}
	if diff := cmp.Diff(told, wantTold); diff != "" {
		t.Errorf("attempts to find a whole file (-got +want):\n%s", diff)
	}
	if err != nil {
		return
	}
	contents := func(f *File) []byte {
		b, err := io.ReadAll(io.NewSectionReader(f, 0, f.Size()))
		if err != nil {
			t.Error(err)
		}
		return b
	}
	if !bytes.Equal(contents(file), contents(want)) {
		t.Error("the whole file has other contents")
	}
	if b := file.contents(); b != nil && !bytes.Equal(b, contents(want)) {
		t.Error("contents() has other contents")
	}
	modified, ok := file.modified()
	wantModified, wantOK := want.modified()
	if file.stateText() != want.stateText() || modified != wantModified || ok != wantOK || file.unverified != want.unverified || file.Path() != want.Path() || file.Where() != want.Where() {
		t.Errorf("the whole file is %+v, want %+v", file, want)
	}
	if err := file.Close(); err != nil {
		t.Error(err)
	}
	if file.contents() != nil {
		t.Error("contents() after Close")
	}
}

// TestFinders is the conformance suite: for the same file at its place, each finder must return the
// same result.
func TestFinders(t *testing.T) {
	whole := program{id: wanted, sections: []string{".text", ".debug_info"}}.bytes(t)
	tests := []struct {
		name string
		put  func(t *testing.T, path string)
		// said is a part of the reason in the only Attempt about the place; empty if the file is
		// found
		said       string
		unverified bool // found only by finders that accept a file for its place
	}{
		{name: "found", put: func(t *testing.T, path string) { put(t, path, whole) }},
		{name: "found through a symbolic link", put: func(t *testing.T, path string) {
			put(t, path+".elsewhere", whole)
			if err := os.Symlink(path+".elsewhere", path); err != nil {
				t.Skip(err)
			}
		}},
		{name: "missing", put: func(*testing.T, string) {}, said: "no such file"},
		{name: "wrong ID at the path", put: func(t *testing.T, path string) { put(t, path, program{id: another}.bytes(t)) },
			said: "its build ID is " + another + ", not " + wanted},
		{name: "a longer ID at the path", put: func(t *testing.T, path string) { put(t, path, program{id: wanted + "00"}.bytes(t)) },
			said: "its build ID is " + wanted + "00, not " + wanted},
		{name: "no ID at the path", put: func(t *testing.T, path string) { put(t, path, program{}.bytes(t)) },
			said: "the file has no build ID", unverified: true},
		{name: "FIFO at the path", put: putFIFO, said: "not a regular file"},
		{name: "folder at the path", put: func(t *testing.T, path string) {
			if err := os.MkdirAll(path, 0o777); err != nil {
				t.Fatal(err)
			}
		}, said: "not a regular file"},
		{name: "link to itself at the path", put: func(t *testing.T, path string) {
			if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Symlink(path, path); err != nil {
				t.Skip(err)
			}
		}, said: "too many levels of symbolic links"},
		{name: "empty file", put: func(t *testing.T, path string) { put(t, path, nil) }, said: "not an ELF file"},
		{name: "text file", put: func(t *testing.T, path string) { put(t, path, []byte("#!/bin/sh\n")) }, said: "not an ELF file"},
		{name: "ELF file truncated in its header", put: func(t *testing.T, path string) { put(t, path, whole[:40]) }, said: "not an ELF file"},
		{name: "ELF file truncated in its note", put: func(t *testing.T, path string) { put(t, path, whole[:150]) }, said: "not an ELF file"},
	}
	for _, fc := range finderCases {
		for _, tt := range tests {
			t.Run(fc.name+"/"+tt.name, func(t *testing.T) {
				if runtime.GOOS == "windows" && strings.Contains(tt.said, "levels") {
					t.Skip("other words")
				}
				checkNoFileStaysOpen(t)
				dir := t.TempDir()
				path := filepath.Join(dir, filepath.FromSlash(fc.place))
				tt.put(t, path)
				q := Query{ID: mustParse(t, wanted), Name: path}
				f, told, err := find(t, fc.new(dir), q)
				if tt.said == "" || tt.unverified && fc.unverified {
					if err != nil {
						t.Fatalf("Find: %v, told %v; want the file", err, told)
					}
					if f.Path() != path || f.unverified != tt.unverified || f.OS() == nil || f.Where() == "" {
						t.Errorf("file %s, unverified %v, from %q; want %s, %v", f.Path(), f.unverified, f.Where(), path, tt.unverified)
					}
					checkContent(t, f)
					return
				}
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("Find: %v, want an error that is fs.ErrNotExist", err)
				}
				var about []string
				for _, a := range told {
					if a.Where == path {
						about = append(about, a.Reason)
					}
				}
				if fc.paths && (len(about) != 1 || !strings.Contains(about[0], tt.said)) {
					t.Errorf("told %q about the place, want one thing that holds %q; all: %v", about, tt.said, told)
				}
				if len(told) == 0 {
					t.Error("nothing told")
				}
			})
		}
	}
}

func checkContent(t *testing.T, f *File) {
	t.Helper()
	want, err := os.ReadFile(f.Path())
	if err != nil {
		t.Fatal(err)
	}
	got := make([]byte, f.Size())
	if _, err := f.ReadAt(got, 0); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("content (-got +want):\n%s", diff)
	}
}

func TestAFileThatIsNoneIsAMissThatTellsIt(t *testing.T) {
	id, err := Parse([]byte(wanted))
	if err != nil {
		t.Fatal(err)
	}
	for _, what := range []string{"text", "folder", "nothing"} {
		dir := t.TempDir()
		path := filepath.Join(dir, ".build-id", wanted[:2], wanted[2:]+".debug")
		err := os.MkdirAll(filepath.Dir(path), 0o777)
		switch what {
		case "text":
			err = os.WriteFile(path, []byte("text"), 0o666)
		case "folder":
			err = os.Mkdir(path, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = find(t, NewTree(dir), Query{ID: id})
		var unusable *UnusableError
		if got, want := errors.As(err, &unusable), what != "nothing"; got != want || !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: got %v", what, err)
		}
		if unusable != nil && unusable.Path != path {
			t.Errorf("%s: got the path %s, want %s", what, unusable.Path, path)
		}
	}
}

// newSymbolPath returns a finder that keeps nothing on disk.
func newSymbolPath(paths ...string) *SymbolPath {
	return OpenSymbolPath(SymbolPathOptions{Paths: paths})
}

func TestNamesLeadNowhereButToTheModuleItself(t *testing.T) {
	for _, fc := range finderCases {
		t.Run(fc.name, func(t *testing.T) {
			checkNoFileStaysOpen(t)
			top := t.TempDir()
			dir := filepath.Join(top, "root")
			if err := os.MkdirAll(filepath.Join(dir, ".build-id", "aa"), 0o777); err != nil {
				t.Fatal(err)
			}
			// The canary is a file with the wanted ID outside of the root.
			put(t, filepath.Join(top, "canary"), program{id: wanted}.bytes(t))
			t.Chdir(dir)
			for _, name := range []string{
				"", ".", "..", "../canary", "aa/../../canary", ".build-id/aa/../../../canary", "%2e%2e/canary", "./../canary",
				filepath.Join(top, "canary") + "\x00", "\x00" + filepath.Join(top, "canary"), "\x00",
				strings.Repeat("../", 2000) + top + "/canary", "/" + strings.Repeat("./", 4000), "/dev/zero", "/dev/tty", "/proc/self/mem",
				"linux-vdso.so.1", "[vdso]", "/", "//", "/..", "~/canary", "$HOME/canary", "file://" + top + "/canary",
			} {
				f, told, err := find(t, fc.new(dir), Query{ID: mustParse(t, wanted), Name: name})
				if !errors.Is(err, fs.ErrNotExist) {
					t.Errorf("name %.40q: file %v, error %v; want fs.ErrNotExist", name, f, err)
				}
				if len(told) == 0 {
					t.Errorf("name %.40q: nothing told", name)
				}
			}
		})
	}
}

func TestModulePathMayHoldDotDot(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "lib", "libx.so"), program{id: wanted}.bytes(t))
	put(t, filepath.Join(dir, "bin", "x"), nil)
	name := dir + "/bin/../lib/libx.so"
	f, told, err := find(t, ModulePath{}, Query{ID: mustParse(t, wanted), Name: name})
	if err != nil {
		t.Fatalf("Find: %v, told %v", err, told)
	}
	if f.Path() != name {
		t.Errorf("path %s, want %s", f.Path(), name)
	}
}

func TestIDsWithoutAPlaceAreNotLookedUpInATree(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, ".build-id", "ab", ".debug"), program{id: "ab"}.bytes(t))
	put(t, filepath.Join(dir, ".build-id", "ab", "c.debug"), program{id: "0abc"}.bytes(t))
	for _, id := range []ID{{}, mustParse(t, "ab"), mustParse(t, "abc")} {
		if f, _, err := find(t, NewTree(dir), Query{ID: id}); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ID %q: file %v, error %v; want fs.ErrNotExist", id, f, err)
		}
	}
}

func TestFindersWithoutAnIDFindNothing(t *testing.T) {
	for _, fc := range finderCases {
		dir := t.TempDir()
		path := filepath.Join(dir, filepath.FromSlash(fc.place))
		put(t, path, program{}.bytes(t))
		if f, told, err := find(t, fc.new(dir), Query{Name: path}); !errors.Is(err, fs.ErrNotExist) || len(told) == 0 {
			t.Errorf("%s: file %v, error %v, told %v; want fs.ErrNotExist", fc.name, f, err, told)
		}
	}
}

func TestACancelledFindIsNoMiss(t *testing.T) {
	for _, fc := range finderCases {
		t.Run(fc.name, func(t *testing.T) {
			checkNoFileStaysOpen(t)
			dir := t.TempDir()
			path := filepath.Join(dir, filepath.FromSlash(fc.place))
			put(t, path, program{id: wanted}.bytes(t))
			finder := fc.new(dir)
			q := Query{ID: mustParse(t, wanted), Name: path}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if f, err := finder.Find(ctx, q, nil); !errors.Is(err, context.Canceled) || errors.Is(err, fs.ErrNotExist) {
				t.Errorf("Find = %v, %v; want context.Canceled", f, err)
			}
			if _, told, err := find(t, finder, q); err != nil {
				t.Errorf("Find afterwards: %v, told %v", err, told)
			}
		})
	}
}

func TestTreeTriesTheKindsOfFile(t *testing.T) {
	place := ".build-id/ab/" + wanted[2:]
	sentry := "ab/" + wanted[2:]
	content := program{id: wanted}.bytes(t)
	tests := []struct {
		name  string
		files []string
		kind  Kind
		want  string
		told  []string
	}{
		{"debug file", []string{place, place + ".debug"}, Debug, place + ".debug", nil},
		{"program", []string{place, place + ".debug"}, Executable, place, nil},
		{"supplementary file", []string{place + ".debug"}, Alt, place + ".debug", nil},
		{"debug file without .build-id", []string{"ab/" + wanted[2:] + ".debug"}, Debug, "ab/" + wanted[2:] + ".debug",
			[]string{place + ".debug: no such file"}},
		{"program instead of a debug file", []string{place}, Debug, place,
			[]string{place + ".debug: no such file", place[len(".build-id/"):] + ".debug: no such file"}},
		{"Sentry's debug file", []string{sentry + "/debuginfo", sentry + "/executable", place}, Debug, sentry + "/debuginfo",
			[]string{place + ".debug: no such file", sentry + ".debug: no such file"}},
		{"Sentry's program", []string{sentry + "/debuginfo", sentry + "/executable"}, Executable, sentry + "/executable",
			[]string{place + ": no such file"}},
		{"Sentry's program instead of a debug file", []string{sentry + "/executable"}, Debug, sentry + "/executable",
			[]string{place + ".debug: no such file", sentry + ".debug: no such file", sentry + "/debuginfo: no such file", place + ": no such file"}},
		{"Sentry's folder without a file for us", []string{sentry + "/breakpad"}, Debug, "",
			[]string{place + ".debug: no such file", sentry + ".debug: no such file", sentry + "/debuginfo: no such file", place + ": no such file",
				sentry + "/executable: no such file"}},
		{"no debug file instead of a program", []string{place + ".debug"}, Executable, "",
			[]string{place + ": no such file", place[len(".build-id/"):] + ": no such file"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			for _, file := range tt.files {
				put(t, filepath.Join(dir, file), content)
			}
			f, attempts, err := find(t, NewTree(dir), Query{ID: mustParse(t, wanted), Kind: tt.kind})
			got := ""
			if err == nil {
				got, _ = filepath.Rel(dir, f.Path())
				got = filepath.ToSlash(got)
			}
			var told []string
			for _, a := range attempts {
				rel, _ := filepath.Rel(dir, a.Where)
				told = append(told, filepath.ToSlash(rel)+": "+a.Reason)
			}
			if got != tt.want {
				t.Errorf("found %q, want %q", got, tt.want)
			}
			if diff := cmp.Diff(told, tt.told); diff != "" {
				t.Errorf("told (-got +want):\n%s", diff)
			}
		})
	}
}

func TestSymbolPathPrefersWhatTheKindNeeds(t *testing.T) {
	stripped := program{id: wanted, sections: []string{".text"}}
	symbols := program{id: wanted, sections: []string{".text", ".symtab"}}
	debug := program{id: wanted, sections: []string{".text", ".symtab", ".debug_info"}, noCode: true}
	zdebug := program{id: wanted, sections: []string{".text", ".zdebug_info"}, noCode: true}
	tests := []struct {
		name  string
		files map[string]program
		kind  Kind
		want  string
	}{
		{"debug information over a stripped file", map[string]program{"a": stripped, "b": debug}, Debug, "b"},
		{"debug information over symbols", map[string]program{"a": symbols, "b": debug}, Debug, "b"},
		{"old compressed debug information too", map[string]program{"a": symbols, "b": zdebug}, Debug, "b"},
		{"symbols over a stripped file", map[string]program{"a": stripped, "b": symbols}, Debug, "b"},
		{"a stripped file over nothing", map[string]program{"a": stripped}, Debug, "a"},
		{"debug information for dwz", map[string]program{"a": stripped, "b": debug}, Alt, "b"},
		{"code over none", map[string]program{"a": debug, "b": stripped}, Executable, "b"},
		{"the first path of equals", map[string]program{"c": debug, "b": debug, "d": debug}, Debug, "b"},
		{"another ID never", map[string]program{"a": stripped, "b": {id: another, sections: debug.sections}}, Debug, "a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkNoFileStaysOpen(t)
			dir := t.TempDir()
			for name, p := range tt.files {
				put(t, filepath.Join(dir, name), p.bytes(t))
			}
			f, told, err := find(t, newSymbolPath(dir), Query{ID: mustParse(t, wanted), Kind: tt.kind})
			if err != nil {
				t.Fatalf("Find: %v, told %v", err, told)
			}
			if got := filepath.Base(f.Path()); got != tt.want {
				t.Errorf("found %s, want %s", got, tt.want)
			}
		})
	}
}

func TestSymbolPathSaysWhereItLooked(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "a", "one"), program{id: another}.bytes(t))
	put(t, filepath.Join(dir, "a", "two"), program{}.bytes(t))
	put(t, filepath.Join(dir, "a", "text"), []byte("no ELF file"))
	if err := os.Symlink(dir, filepath.Join(dir, "a", "loop")); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	_, told, err := find(t, newSymbolPath(filepath.Join(dir, "a"), filepath.Join(dir, "b")), Query{ID: mustParse(t, wanted)})
	if !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("Find: %v, want fs.ErrNotExist", err)
	}
	want := []Attempt{
		{filepath.Join(dir, "b"), "no such file"},
		{filepath.Join(dir, "a"), "none of the 2 ELF files in 1 folder has this build ID"},
	}
	if diff := cmp.Diff(told, want); diff != "" {
		t.Errorf("told (-got +want):\n%s", diff)
	}
}

func TestSymbolPathFollowsTheLinkThatTheOperatorNamed(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "real", "x"), program{id: wanted}.bytes(t))
	link := filepath.Join(dir, "link")
	if err := os.Symlink(filepath.Join(dir, "real"), link); err != nil {
		t.Skip(err)
	}
	f, told, err := find(t, newSymbolPath(link), Query{ID: mustParse(t, wanted)})
	if err != nil {
		t.Fatalf("Find: %v, told %v", err, told)
	}
	if got, want := f.Path(), filepath.Join(link, "x"); got != want {
		t.Errorf("found %s, want %s", got, want)
	}
}

func TestSymbolPathIsBuiltOnceForAllGoroutines(t *testing.T) {
	dir := t.TempDir()
	var ids []ID
	for i := range 200 {
		id := fmt.Sprintf("%08x", uint32(0xabcd0000)+uint32(i))
		ids = append(ids, mustParse(t, id))
		put(t, filepath.Join(dir, id[6:], id), program{id: id}.bytes(t))
	}
	p := newSymbolPath(dir)
	var all sync.WaitGroup
	for _, id := range ids {
		all.Go(func() {
			f, err := p.Find(t.Context(), Query{ID: id}, nil)
			if err != nil {
				t.Errorf("Find(%s): %v", id, err)
				return
			}
			defer f.Close()
			if got := filepath.Base(f.Path()); got != id.String() {
				t.Errorf("Find(%s) = %s", id, got)
			}
		})
	}
	all.Wait()
}

func TestAFileChangedSinceItWasIndexedIsNotUsed(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x")
	put(t, path, program{id: wanted}.bytes(t))
	p := newSymbolPath(dir)
	q := Query{ID: mustParse(t, wanted)}
	if _, _, err := find(t, p, q); err != nil {
		t.Fatal(err)
	}
	put(t, path, program{id: another}.bytes(t))
	_, told, err := find(t, p, q)
	if !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Find: %v, want fs.ErrNotExist", err)
	}
	if diff := cmp.Diff(told, []Attempt{{path, "its build ID is " + another + ", not " + wanted}}); diff != "" {
		t.Errorf("told (-got +want):\n%s", diff)
	}
}

func TestOpenTakesOnlyAVerifiedFile(t *testing.T) {
	checkNoFileStaysOpen(t)
	dir := t.TempDir()
	tests := []struct {
		name string
		file program
		want error
	}{
		{"right", program{id: wanted}, nil},
		{"wrong", program{id: another}, ErrOtherID},
		{"none", program{}, ErrNoID},
	}
	for _, tt := range tests {
		path := filepath.Join(dir, tt.name)
		put(t, path, tt.file.bytes(t))
		f, err := Open(path, "test", mustParse(t, wanted))
		if !errors.Is(err, tt.want) {
			t.Errorf("%s: Open: %v, want %v", tt.name, err, tt.want)
		}
		if f != nil {
			f.Close()
		}
	}
	if _, err := Open(filepath.Join(dir, "missing"), "test", mustParse(t, wanted)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Open of a missing file: %v, want fs.ErrNotExist", err)
	}
}
