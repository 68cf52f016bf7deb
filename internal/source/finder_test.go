package source_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/internal/source"
	"github.com/symfilter/symfilter/symbolize"
)

// ledger is an address of testdata with two inlined calls; its files have checksums.
var ledger = symbolize.Location{ID: mustParse("eecd138796b4297ca7ee7bb08854e1173fee4bff"), Addr: 0x1917}

func mustParse(hex string) buildid.ID {
	id, err := buildid.Parse([]byte(hex))
	if err != nil {
		panic(err)
	}
	return id
}

func symbolizer(t *testing.T) *symbolize.Symbolizer {
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("../../testdata/debug")}})
	t.Cleanup(func() { s.Close() })
	return s
}

// shown returns the snippets of the frames at a location, and the messages, as text.
func shown(t *testing.T, o source.Options, l symbolize.Location) string {
	t.Helper()
	var b strings.Builder
	o.Patience = time.Minute
	o.Notify = func(s string) { fmt.Fprintln(&b, "notify:", s) }
	o.Explain = func(s string) { fmt.Fprintln(&b, "explain:", s) }
	f := source.NewFinder(o)
	defer f.Close()
	frames, err := o.Symbolizer.Ask(t.Context(), nil, l, symbolize.Policy{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range frames {
		s := f.Snippet(l, &frames[i])
		if s.First == 0 {
			fmt.Fprintf(&b, "%s:%d: nothing\n", frames[i].File, frames[i].Line)
			continue
		}
		fmt.Fprintf(&b, "%s, verified %v\n", s.Origin, s.Verified)
		for j, line := range s.Lines {
			fmt.Fprintf(&b, "%4d | %s\n", int(s.First)+j, line)
		}
	}
	return b.String()
}

func roots(t *testing.T, dirs ...string) source.Roots {
	t.Helper()
	r, err := source.OpenRoots(dirs)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

// copyOf returns a folder with a copy of testdata's sources, with one file edited.
func copyOf(t *testing.T, name string, edit func(string) string) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "inventory"), os.DirFS("../../testdata/inventory")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "inventory", name)
	text, err := os.ReadFile(path)
	if err == nil {
		err = errors.Join(os.Chmod(path, 0o600), os.WriteFile(path, []byte(edit(string(text))), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestFilesBelowARootAreVerified(t *testing.T) {
	t.Chdir("../../testdata")
	s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree("debug")}})
	defer s.Close()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range []buildid.PrefixMap{{Old: "/src", New: "."}, {Old: "/src", New: here}, {Old: "/src/", New: ""}} {
		o := source.Options{Symbolizer: s, Roots: roots(t, "."), Around: 1, PrefixMap: prefixmap.Maps{m}}
		got := strings.ReplaceAll(shown(t, o, ledger), here, "DIR")
		const want = `explain: /src/inventory/pool.h: found: DIR/inventory/pool.h
DIR/inventory/pool.h, verified true
  32 |   const T *next(size_t i) const {
  33 |     while (i < N && !slots_[i].used) i++;
  34 |     return i < N ? &slots_[i].value : nullptr;
explain: /src/inventory/ledger.cc: found: DIR/inventory/ledger.cc
DIR/inventory/ledger.cc, verified true
`
		if !strings.HasPrefix(got, want) || strings.Contains(got, "notify") || strings.Contains(got, "nothing") || strings.Count(got, "verified true") != 3 {
			t.Errorf("%v: got\n%s\nwant it to begin with\n%s", m, got, want)
		}
	}
}

func TestAnotherVersionOfAFileIsNotShown(t *testing.T) {
	dir := copyOf(t, "pool.h", func(s string) string { return strings.Replace(s, "return", "return ", 1) })
	o := source.Options{Symbolizer: symbolizer(t), Roots: roots(t, dir), PrefixMap: prefixmap.Maps{{Old: "/src", New: dir}}}
	got := strings.ReplaceAll(shown(t, o, ledger), dir, "DIR")
	for _, want := range []string{
		"notify: DIR/inventory/pool.h: no lines are shown: not the version that was compiled: its checksum differs\n",
		"/src/inventory/pool.h:33: nothing\n",
		"DIR/inventory/ledger.cc, verified true\n  13 | ",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("got\n%s\nwant in it %q", got, want)
		}
	}
}

// Without debug information nothing is verified, and a line beyond the end shows that the file is
// another version.
func TestFilesWithoutAChecksum(t *testing.T) {
	dir := t.TempDir()
	put(t, dir, "a.c", "\ufeffone\r\ntwo\nthree")
	var said []string
	f := source.NewFinder(source.Options{Roots: roots(t, dir), Around: 1, Notify: func(s string) { said = append(said, strings.ReplaceAll(s, dir, "DIR")) }})
	defer f.Close()
	for line, want := range map[uint32]string{
		0: "0 []",
		1: "1 [one two]",
		2: "1 [one two three]",
		3: "2 [two three]",
		4: "0 []",
		5: "0 []",
	} {
		s := f.Snippet(symbolize.Location{Name: "m"}, &symbolize.Frame{File: "a.c", Line: line})
		if got := fmt.Sprintf("%d %s", s.First, s.Lines); got != want {
			t.Errorf("line %d: got %s, want %s", line, got, want)
		}
	}
	if len(said) != 2 || said[0] != "DIR/a.c: not verified: the debug information has no checksum of this source file" ||
		!strings.HasPrefix(said[1], "DIR/a.c: no lines are shown: the file has 3 lines and lacks line ") {
		t.Errorf("messages: got %q", said)
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func TestLinesOfLongFiles(t *testing.T) {
	dir := t.TempDir()
	var b strings.Builder
	for i := 1; i <= 1000; i++ {
		fmt.Fprintf(&b, "line %d%s\n", i, strings.Repeat("x", i%7))
	}
	put(t, dir, "a.c", b.String())
	f := source.NewFinder(source.Options{Roots: roots(t, dir), Around: 2})
	defer f.Close()
	for i := 1; i <= 1000; i++ {
		s := f.Snippet(symbolize.Location{Name: "m"}, &symbolize.Frame{File: "a.c", Line: uint32(i)})
		at := i - int(s.First)
		if at < 0 || at >= len(s.Lines) || !strings.HasPrefix(string(s.Lines[at]), fmt.Sprintf("line %d", i)) || len(s.Lines) != 5-max(0, 3-i)-max(0, i-998) {
			t.Fatalf("line %d: got %d %q", i, s.First, s.Lines)
		}
	}
}

// A server returns each of its files after a delay.
type server struct {
	files map[string]string
	takes time.Duration

	mu    sync.Mutex
	asked []string
}

func (s *server) Source(ctx context.Context, id buildid.ID, path string, note func(buildid.Attempt)) ([]byte, error) {
	s.mu.Lock()
	s.asked = append(s.asked, path)
	slices.Sort(s.asked)
	s.mu.Unlock()
	select {
	case <-time.After(s.takes):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if text, ok := s.files[path]; ok {
		return []byte(text), nil
	}
	return nil, fs.ErrNotExist
}

func TestServersAreAskedForWhatIsNotFound(t *testing.T) {
	pool, err := os.ReadFile("../../testdata/inventory/pool.h")
	if err != nil {
		t.Fatal(err)
	}
	dir := copyOf(t, "pool.h", strings.ToUpper)
	server := &server{files: map[string]string{"/src/inventory/pool.h": string(pool), "/src/inventory/ledger.cc": "other\n"}}
	o := source.Options{Symbolizer: symbolizer(t), Server: server}
	const want = `explain: /src/inventory/pool.h: not embedded, and no folder of sources is named
explain: /src/inventory/pool.h: found: the server's /src/inventory/pool.h
the server's /src/inventory/pool.h, verified true
  33 |     while (i < N && !slots_[i].used) i++;
notify: the server's /src/inventory/ledger.cc: no lines are shown: not the version that was compiled: its checksum differs
explain: /src/inventory/ledger.cc: not embedded, and no folder of sources is named
explain: /src/inventory/ledger.cc: the server's /src/inventory/ledger.cc: not the version that was compiled: its checksum differs
/src/inventory/ledger.cc:13: nothing
/src/inventory/ledger.cc:27: nothing
`
	if got := shown(t, o, ledger); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	o.Roots, o.PrefixMap = roots(t, dir), prefixmap.Maps{{Old: "/src", New: dir}}
	if got := shown(t, o, ledger); !strings.Contains(got, "the server's /src/inventory/pool.h, verified true\n") || strings.Contains(got, "notify") {
		t.Errorf("a changed file below the root: got\n%s", got)
	}
}

// A server that does not answer delays only the first question.
func TestAServerIsWaitedForOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := &server{files: map[string]string{"/a.c": "a\n", "/b.c": "b\n"}, takes: 5 * time.Second}
		f := source.NewFinder(source.Options{Server: server, Patience: 2 * time.Second})
		defer f.Close()
		ask := func(file string) string {
			s := f.Snippet(symbolize.Location{ID: ledger.ID}, &symbolize.Frame{File: file, Line: 1})
			return fmt.Sprintf("%s", s.Lines)
		}
		began := time.Now()
		if got := ask("/a.c") + ask("/b.c") + ask("/c.c") + ask("a.c"); got != "[][][][]" || time.Since(began) != 2*time.Second {
			t.Errorf("at first: got %s after %v", got, time.Since(began))
		}
		time.Sleep(5 * time.Second)
		began = time.Now()
		if got := ask("/a.c") + ask("/b.c") + ask("/c.c"); got != "[a][b][]" || time.Since(began) != 0 {
			t.Errorf("later: got %s after %v", got, time.Since(began))
		}
		if got := fmt.Sprint(server.asked); got != "[/a.c /b.c /c.c]" {
			t.Errorf("asked for %s", got)
		}
	})
}

func TestServersWithoutSourcesOfABuildAreNotAskedForAll(t *testing.T) {
	server := &server{}
	f := source.NewFinder(source.Options{Server: server, Patience: time.Minute})
	defer f.Close()
	for i := range 100 {
		f.Snippet(symbolize.Location{ID: ledger.ID}, &symbolize.Frame{File: fmt.Sprintf("/%d.c", i), Line: 1})
	}
	if len(server.asked) != 8 {
		t.Errorf("asked %d times, want 8", len(server.asked))
	}
}
