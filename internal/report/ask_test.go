package report

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// hangs is a finder that never answers, like a server that hangs.
type hangs struct{}

func (hangs) Find(ctx context.Context, _ buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// builds returns the names of n object files with different build IDs.
func builds(t *testing.T, n int) (names []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join("..", "..", "symbolize", "testdata", "arch", "*.elf"))
	if err != nil || len(all) < n {
		t.Fatalf("%d fixtures, want %d: %v", len(all), n, err)
	}
	for i, name := range all[:n] {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, filepath.Join(t.TempDir(), fmt.Sprintf("lib%d.so", i)))
		if err := os.WriteFile(names[i], data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// A server that hangs must delay a report only once, however many objects wait for the server. The
// report may name the objects all at the beginning, or one after the other.
func TestAReportWaitsOnce(t *testing.T) {
	const wait = 2 * time.Second
	for _, n := range []int{1, 2, 3, 6} {
		for _, early := range []bool{true, false} {
			t.Run(fmt.Sprintf("%d objects, early %v", n, early), func(t *testing.T) {
				names := builds(t, n)
				synctest.Test(t, func(t *testing.T) {
					s := symbolize.New(symbolize.Options{Servers: []symbolize.Finder{hangs{}}})
					defer s.Close()
					o := &Options{Symbolizer: s, Wait: wait}
					objects, asker := NewObjects(o, 10, false), NewAsker(o)
					defer objects.Close()
					if early {
						for _, name := range names {
							asker.Prefetch(objects.Named(name))
						}
					}
					start := time.Now()
					for range 3 {
						for _, name := range names {
							f := objects.Named(name)
							got := asker.Frames(nil, f, f.Code[0].Addr)
							if !got.Pending || got.Kept {
								t.Errorf("%s: got %+v, want a pending answer", filepath.Base(name), got)
							}
						}
					}
					if took := time.Since(start); took != wait {
						t.Errorf("the report waited for %v, want %v", took, wait)
					}
				})
			})
		}
	}
}

// late is a finder that takes this time to report that it has no file.
type late time.Duration

func (l late) Find(ctx context.Context, _ buildid.Query, _ func(buildid.Attempt)) (*buildid.File, error) {
	select {
	case <-time.After(time.Duration(l)):
		return nil, fs.ErrNotExist
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// A report may follow lines of a log that form a block. The waits of the report must not count
// towards the bound of that block.
func TestAReportAfterALogIsNoPartOfItsBlock(t *testing.T) {
	const wait, answers = 2 * time.Second, 1200 * time.Millisecond
	names := builds(t, 4)
	synctest.Test(t, func(t *testing.T) {
		s := symbolize.New(symbolize.Options{Servers: []symbolize.Finder{late(answers)}})
		defer s.Close()
		p := &Patience{Symbolizer: s, Local: wait, Servers: wait, PerMinute: 10 * time.Second}
		p.Block()
		o := &Options{Symbolizer: s}
		objects, asker := NewObjects(o, 10, false), newAsker(o, p)
		defer objects.Close()
		for _, name := range names {
			f := objects.Named(name)
			start := time.Now()
			got := asker.Frames(nil, f, f.Code[0].Addr)
			if took := time.Since(start); took != answers || got.Pending {
				t.Errorf("%s: waited for %v, got %+v, want %v and an answer", filepath.Base(name), took, got, answers)
			}
		}
	})
}

// The most recently used files must stay open for another report, unless they were replaced.
func TestFilesStayOpenForTheNextReport(t *testing.T) {
	dir := t.TempDir()
	replace := func(name, by string) {
		content, err := os.ReadFile(by)
		if err != nil {
			t.Fatal(err)
		}
		temporary := filepath.Join(dir, "new")
		if err := errors.Join(os.WriteFile(temporary, content, 0o755), os.Rename(temporary, filepath.Join(dir, name))); err != nil {
			t.Fatal(err)
		}
	}
	files := builds(t, 2)
	for _, name := range []string{"a", "b", "c"} {
		replace(name, files[0])
	}
	objects := NewObjects(&Options{}, 10, true)
	defer objects.Close()
	const most = 2
	type outcome struct {
		ID     string
		Err    error
		Opened int
	}
	var got []outcome
	use := func(name string) {
		f := objects.Named(filepath.Join(dir, name))
		if open := f.Image != nil; open != (f.Err == nil) {
			t.Errorf("%s: open is %t, and the error is %v", name, open, f.Err)
		}
		opened, _ := objects.Work()
		got = append(got, outcome{f.ID.String(), f.Err, opened})
	}
	for _, name := range []string{"d", "a", "b"} {
		use(name)
		objects.Renew(most)
	}
	replace("b", files[1])
	replace("d", files[0])
	for _, name := range []string{"a", "b", "c", "d", "a"} { // the last a was closed for c and d
		use(name)
		objects.Renew(most)
	}
	if err := os.Remove(filepath.Join(dir, "a")); err != nil {
		t.Fatal(err)
	}
	use("a")
	first, second := got[1].ID, got[4].ID
	want := []outcome{
		{"", ErrNoFile, 0}, {first, nil, 1}, {first, nil, 2},
		{first, nil, 2}, {second, nil, 3}, {first, nil, 4}, {first, nil, 5}, {first, nil, 6}, {"", ErrNoFile, 6},
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateErrors()); diff != "" || first == second {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// For each name in a report, Named must return an open object file, or the reason why the file
// cannot be used.
func TestObjectsAreRegularELFFilesWithCode(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("not an ELF file"), 0o644); err != nil {
		t.Fatal(err)
	}
	good := builds(t, 1)[0]
	for _, test := range []struct {
		name, want string
		o          Options
	}{
		{good, "<nil>", Options{}},
		{good, "not opened (--no-paths)", Options{NoPaths: true}},
		{good + " (deleted)", "deleted while the program ran; a new file may have this path", Options{}},
		{"lib.so", "not an absolute path", Options{}},
		{filepath.Join(dir, "gone"), "no such file here; --sysroot names a folder with the files of another machine", Options{}},
		{"/lib/a.so", "<nil>", Options{PrefixMap: []buildid.PrefixMap{{Old: "/lib/a.so", New: good}}}},
		{"/" + filepath.Base(good), "<nil>", Options{Sysroot: filepath.Dir(good)}},
		{dir, "not a regular file", Options{}},
		{text, "ELF header: no ELF magic in the first 4 bytes", Options{}},
	} {
		objects := NewObjects(&test.o, 1, true)
		f := objects.Named(test.name)
		if got := fmt.Sprint(f.Err); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
		if f.Err == nil && (f.Image == nil || f.ID.IsZero() || len(f.Code) == 0) {
			t.Errorf("%s: got %+v, want an open image with an ID and code", test.name, f)
		}
		if again := objects.Named(test.name); again != f {
			t.Errorf("%s is looked at twice", test.name)
		}
		if more := objects.Named("/one/more"); more.Err != ErrTooMany {
			t.Errorf("the second object: got %v, want %v", more.Err, ErrTooMany)
		}
		objects.Close()
		if f.Image != nil {
			t.Errorf("%s stays open", test.name)
		}
	}
}

// Missing must count frames without a name by the path of their object file.
func TestMissingCountsByPath(t *testing.T) {
	var m Missing
	f := &Object{Path: "/lib/a.so"}
	m.Add(f.Unresolved(2, nil))
	m.Add(f.Unresolved(1, fs.ErrNotExist))
	m.Add(symbolize.Unresolved{Frames: 4})
	for i := range maxMissing {
		m.Add(symbolize.Unresolved{Name: fmt.Sprintf("/z/%05d", i), Frames: 1})
	}
	all := m.List()
	if got := fmt.Sprint(len(all), all[0], all[1]); got != fmt.Sprint(maxMissing, symbolize.Unresolved{Frames: 4 + 2}, symbolize.Unresolved{Name: "/lib/a.so", Frames: 3, Err: fs.ErrNotExist}) {
		t.Errorf("got %s", got)
	}
}
