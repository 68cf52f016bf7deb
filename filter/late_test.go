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

// TestLateDebugFileServesLaterLines checks that answers from a file without debug information are
// used for a limited time.
func TestLateDebugFileServesLaterLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := t.TempDir()
		debug, err := os.ReadFile("testdata/debug/.build-id/a0/a1a2a3a4a5a6a7.debug")
		if err != nil {
			t.Fatal(err)
		}
		place := filepath.Join(dir, ".build-id", "a0", "a1a2a3a4a5a6a7.debug")
		if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
			t.Fatal(err)
		}
		s := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{
			buildid.NewTree(dir),
			buildid.NewTree("testdata/symbols-only"),
		}})
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
		if err := os.WriteFile(place, debug, 0o666); err != nil {
			t.Fatal(err)
		}
		want := "at leaf(int)[/src/a.cpp:16]\n"
		for range 4 { // the question itself starts the search
			time.Sleep(time.Minute)
			ask()
			synctest.Wait()
		}
		if got := ask(); got != want {
			t.Errorf("with the late debug file: got %q, want %q", got, want)
		}
	})
}
