package symbolize

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
)

func TestTheBestFileIsUsed(t *testing.T) {
	f := build(t, "shop", source)
	table, dynamic, none := f.variant(t, "--strip-debug"), f.variant(t, "--strip-all"), fixture{path: "/nowhere", id: f.id}
	for _, test := range []struct {
		name    string
		finders []Finder
		want    string // the finder of the file
		holds   Holds
	}{
		{"debug information ends the search", []Finder{oneFile{f, "first"}, oneFile{f, "second"}}, "first", DebugInfo},
		{"debug information before symbols", []Finder{oneFile{table, "first"}, oneFile{dynamic, "second"}, oneFile{f, "third"}}, "third", DebugInfo},
		{"a symbol table before dynamic symbols", []Finder{oneFile{dynamic, "first"}, oneFile{table, "second"}}, "second", SymbolTable},
		{"the earlier of equals", []Finder{oneFile{table, "first"}, oneFile{table, "second"}}, "first", SymbolTable},
		{"a miss is passed over", []Finder{oneFile{none, "first"}, oneFile{dynamic, "second"}}, "second", DynamicSymbols},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, Options{}, test.finders...)
			code(s, f.at(0))
			r := s.Report(f.id, "")
			if r.Where != test.want || r.Holds != test.holds {
				t.Errorf("got the file with %s from %q, want that with %s from %q", r.Holds, r.Where, test.holds, test.want)
			}
		})
	}
}

func TestAFileThatAppearsIsFound(t *testing.T) {
	f := build(t, "shop", source)
	entry := f.symbols(t)["entry"].Value
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		s := New(Options{Finders: []Finder{buildid.NewTree(dir)}})
		defer s.Close()

		_, err := s.Ask(context.Background(), nil, f.at(entry), Policy{})
		var miss *NotFoundError
		if !errors.As(err, &miss) || !errors.Is(err, fs.ErrNotExist) || miss.ID != f.id {
			t.Fatalf("got %v, want a NotFoundError for %s", err, f.id)
		}
		f.place(t, dir)
		if got, want := code(s, f.at(entry)), miss.Error(); got != want {
			t.Errorf("at once: got %q, want %q: a miss is remembered", got, want)
		}
		time.Sleep(retryMiss + 1)
		if got, want := code(s, f.at(entry)), miss.Error(); got != want {
			t.Errorf("after %v: got %q, want %q: looking is in the background", retryMiss, got, want)
		}
		synctest.Wait()
		if got, want := code(s, f.at(entry)), "entry /src/shop.cc:17:35\n"; got != want {
			t.Errorf("then: got %q, want %q", got, want)
		}
	})
}

func TestAnotherNameIsTriedForAMissingModule(t *testing.T) {
	f := build(t, "shop", source)
	entry := f.symbols(t)["entry"].Value
	s := open(t, Options{}, buildid.ModulePath{})
	l := Location{ID: f.id, Name: "shop.so", Addr: entry}
	if _, err := s.Ask(context.Background(), nil, l, Policy{}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("got %v, want a miss", err)
	}
	l.Name = f.path
	if got, want := code(s, l), "entry /src/shop.cc:17:35\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestAFileOfAnotherBuildIsNotUsed(t *testing.T) {
	f, other := build(t, "shop", source), build(t, "other", source)
	dir := t.TempDir()
	copyFile(t, f.place(t, dir), other.path)
	s := open(t, Options{}, buildid.NewTree(dir))
	if _, err := s.Ask(context.Background(), nil, f.at(f.symbols(t)["entry"].Value), Policy{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want a miss", err)
	}
	r := s.Report(f.id, "")
	if len(r.Attempts) == 0 || !strings.Contains(r.Attempts[0].Reason, other.id.String()) {
		t.Errorf("got %v, want an attempt that names %s", r.Attempts, other.id)
	}
}

func TestAFileThatIsNoELFFileIsAMiss(t *testing.T) {
	f := build(t, "shop", source)
	dir := t.TempDir()
	if err := os.WriteFile(f.place(t, dir), []byte("<html>404</html>"), 0o666); err != nil {
		t.Fatal(err)
	}
	s := open(t, Options{}, buildid.NewTree(dir))
	_, err := s.Ask(context.Background(), nil, f.at(0), Policy{})
	var unusable *buildid.UnusableError
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &unusable) || !strings.HasPrefix(unusable.Path, dir) {
		t.Errorf("got %v, want a miss because of the file in %s", err, dir)
	}
	if r := s.Report(f.id, ""); len(r.Attempts) == 0 || !strings.Contains(r.Attempts[0].Reason, "ELF") {
		t.Errorf("got %v, want an attempt that says that it is no ELF file", r.Attempts)
	}
}

// A file that is truncated while it is open must be closed, and the fault must be reported. A new
// file at its path must be used after retryMiss. After a second truncation, a new file must be used
// after asideMin, and after a third after twice asideMin. Other files must still answer.
func TestAFileTruncatedWhileOpenIsSetAside(t *testing.T) {
	f, good := build(t, "shop", source), build(t, "good", source)
	entry := f.symbols(t)["entry"].Value
	const line = "entry /src/shop.cc:17:35\n"
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		path := f.place(t, dir)
		good.place(t, dir)
		s := New(Options{Finders: []Finder{buildid.NewTree(dir)}})
		s.cache.memory.wholeUpTo = 0 // a file that was read whole cannot shrink
		defer s.Close()

		goodLine := strings.ReplaceAll(line, "shop.cc", "good.cc")
		both := func(when, want string) {
			t.Helper()
			if got := code(s, f.at(entry)); !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want %q", when, got, want)
			}
			if got := code(s, good.at(entry)); got != goodLine {
				t.Errorf("%s, the other file: got %q, want %q", when, got, goodLine)
			}
		}
		lookAgain := func(after time.Duration) {
			time.Sleep(after + 1)
			code(s, f.at(entry))
			synctest.Wait()
		}
		breakIt := func() {
			t.Helper()
			if err := os.Truncate(path, 100); err != nil {
				t.Fatal(err)
			}
			both("truncated", object.ErrFault.Error())
			var fault *FaultError
			if _, err := s.Ask(context.Background(), nil, f.at(entry), Policy{}); !errors.As(err, &fault) || fault.Path != path {
				t.Errorf("afterwards: got %v, want a FaultError of %s", err, path)
			}
			if r := s.Report(f.id, ""); !strings.Contains(r.Fault, object.ErrFault.Error()) || r.Path != "" {
				t.Errorf("the report says %q and uses %q, want %q and no file", r.Fault, r.Path, object.ErrFault)
			}
			copyFile(t, path, f.path)
		}

		both("whole", line)
		breakIt()
		lookAgain(retryMiss)
		both("put back", line)
		breakIt()
		lookAgain(asideMin - time.Minute)
		both("put back the second time, early", object.ErrFault.Error())
		lookAgain(time.Minute)
		both("put back the second time", line)
		breakIt()
		lookAgain(2*asideMin - time.Minute)
		both("put back the third time, early", object.ErrFault.Error())
		lookAgain(time.Minute)
		both("put back the third time", line)
	})
}

func TestSymbolsAnswerWhereDebugInformationIsBroken(t *testing.T) {
	f := build(t, "shop", source)
	entry := f.symbols(t)["entry"].Value
	for _, section := range []string{".debug_info", ".debug_abbrev", ".debug_aranges"} {
		t.Run(section, func(t *testing.T) {
			v := f.variant(t)
			damage(t, v.path, section)
			s := open(t, Options{}, oneFile{v, "here"})
			got := code(s, f.at(entry))
			if !strings.HasPrefix(got, "entry") {
				t.Errorf("got %q, want the function", got)
			}
			r := s.Report(f.id, "")
			if r.Path != v.path || r.Holds != DebugInfo {
				t.Errorf("the report gives %q with %s, want %q with %s", r.Path, r.Holds, v.path, DebugInfo)
			}
			if r.Fault == "" && !strings.Contains(got, "shop.cc") {
				t.Error("there is no line, and the report does not say why")
			}
		})
	}
}

func TestACompressedFileStaysReadableWhenItsNameGoes(t *testing.T) {
	for _, flag := range []string{"--compress-debug-sections=zlib", "--decompress-debug-sections"} {
		t.Run(flag, func(t *testing.T) {
			f := build(t, "shop", source)
			v := f.variant(t, flag)
			s := open(t, Options{}, oneFile{v, "here"})
			code(s, f.at(0)) // opens the file
			if err := os.Remove(v.path); err != nil {
				t.Fatal(err)
			}
			if got, want := code(s, f.at(f.symbols(t)["entry"].Value)), "entry /src/shop.cc:17:35\n"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestOnlyCompressedFilesKeepTheirDescriptor(t *testing.T) {
	f := build(t, "shop", source)
	packed := f.variant(t, "--compress-debug-sections=zlib")
	for _, test := range []struct {
		name string
		fixture
		want int64
	}{{"plain", f, 0}, {"compressed", packed, 1}} {
		t.Run(test.name, func(t *testing.T) {
			s := open(t, Options{}, oneFile{test.fixture, "here"})
			code(s, f.at(0))
			if got := s.cache.memory.byFD.Load(); got != test.want {
				t.Errorf("%d descriptors, want %d", got, test.want)
			}
			open := 0
			fds, err := os.ReadDir("/proc/self/fd")
			if err != nil {
				t.Skip(err)
			}
			for _, fd := range fds {
				if to, err := os.Readlink(filepath.Join("/proc/self/fd", fd.Name())); err == nil && to == test.path {
					open++
				}
			}
			if open != int(test.want) {
				t.Errorf("%s is open %d times, want %d", test.path, open, test.want)
			}
		})
	}
}

func TestReportSaysWhereAFileWasLookedFor(t *testing.T) {
	f := build(t, "shop", source)
	dir := t.TempDir()
	s := open(t, Options{}, buildid.NewTree(dir), buildid.ModulePath{})
	if diff := cmp.Diff(s.Report(f.id, "shop.so"), Report{}, cmp.Comparer(sameID)); diff != "" {
		t.Errorf("before it is asked for: got -, want +\n%s", diff)
	}
	code(s, f.at(0))
	hex := f.id.String()
	place := hex[:2] + "/" + hex[2:]
	want := Report{
		ID:   f.id,
		Name: "shop.so",
		Attempts: []buildid.Attempt{
			{Where: dir + "/.build-id/" + place + ".debug", Reason: "no such file"},
			{Where: dir + "/" + place + ".debug", Reason: "no such file"},
			{Where: dir + "/.build-id/" + place, Reason: "no such file"},
			{Where: dir + "/" + place, Reason: "no such file"},
			{Where: "shop.so", Reason: "not an absolute path"},
		},
	}
	if diff := cmp.Diff(s.Report(f.id, "shop.so"), want, cmp.Comparer(sameID)); diff != "" {
		t.Errorf("got -, want +\n%s", diff)
	}
	if diff := cmp.Diff(s.Reports(), []Report{want}, cmp.Comparer(sameID)); diff != "" {
		t.Errorf("all: got -, want +\n%s", diff)
	}
}

func sameID(a, b buildid.ID) bool { return a == b }
