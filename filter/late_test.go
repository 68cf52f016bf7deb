package filter

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// A lateFile is a debug file that is missing in its tree until arrive is called.
type lateFile struct {
	tree, place string
	content     []byte
}

func newLateFile(t *testing.T) *lateFile {
	t.Helper()
	const name = ".build-id/a0/a1a2a3a4a5a6a7.debug"
	l := &lateFile{tree: t.TempDir()}
	l.place = filepath.Join(l.tree, name)
	var err error
	if l.content, err = os.ReadFile(filepath.Join("testdata", "debug", name)); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(l.place), 0o777); err != nil {
		t.Fatal(err)
	}
	return l
}

// symbolizer returns a Symbolizer that finds only the symbols of the file until arrive is called.
func (l *lateFile) symbolizer() *symbolize.Symbolizer {
	return symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree(l.tree), buildid.NewTree("testdata/symbols-only")}})
}

// arrive puts the file into its tree, and calls ask until the symbolizer has found the file. It
// must run in a bubble of synctest.
func (l *lateFile) arrive(t *testing.T, ask func()) {
	t.Helper()
	if err := os.WriteFile(l.place, l.content, 0o666); err != nil {
		t.Fatal(err)
	}
	for range 4 { // a question starts the search; a later one gets the answer
		time.Sleep(time.Minute)
		ask()
		synctest.Wait()
	}
}

// When a debug file arrives late, later lines must get their answers from it, not from the symbols
// that earlier lines used.
func TestLateDebugFileServesLaterLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := newLateFile(t)
		s := late.symbolizer()
		defer s.Close()
		var b strings.Builder
		f := New(&b, Options{Symbolizer: s, Patience: patient})
		io.WriteString(f, "{{{module:0:a.out:elf:a0a1a2a3a4a5a6a7}}}\n{{{mmap:0x500000:0x1000:load:0:rx:0x400000}}}\n")
		ask := func() string {
			b.Reset()
			fmt.Fprintln(f, "at {{{pc:0x500140:pc}}}")
			return b.String()[strings.LastIndex(b.String(), "at "):]
		}
		if got, want := ask(), "at leaf(int)+0x8\n"; got != want {
			t.Fatalf("with symbols only: got %q, want %q", got, want)
		}
		late.arrive(t, func() { ask() })
		want := "at leaf(int)[/src/a.cpp:16]\n"
		if got := ask(); got != want {
			t.Errorf("with the late debug file: got %q, want %q", got, want)
		}
	})
}
