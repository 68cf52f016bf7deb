//go:build unix

package follow

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/lineage"
)

// Rotation moves an archive while it is opened, or a program writes to it. The archive must be
// examined again, whatever is at its path then.
func TestArchivesThatLoseTheirPathAreExaminedAgain(t *testing.T) {
	text := gzipped(t, "one\n")
	damaged := gzipped(t, strings.Repeat("two\n", 100))
	damaged[10] = 0xff // an invalid block type
	move := func(t *testing.T, path string) { rename(t, path, strings.Replace(path, ".1.", ".2.", 1)) }
	make := func(t *testing.T, path string, b []byte) {
		if err := os.WriteFile(path, b, 0o666); err != nil {
			t.Fatal(err)
		}
		setTime(t, path, time.Now().Add(-time.Hour)) // it does not look as if it were still written
	}
	for name, change := range map[string]func(t *testing.T, path string){
		"none":                     move,
		"a folder":                 func(t *testing.T, path string) { move(t, path); os.Mkdir(path, 0o777) },
		"an archive":               func(t *testing.T, path string) { move(t, path); make(t, path, gzipped(t, "two\n")) },
		"an empty file":            func(t *testing.T, path string) { move(t, path); make(t, path, nil) },
		"the first byte":           func(t *testing.T, path string) { move(t, path); make(t, path, text[:1]) },
		"a part of an archive":     func(t *testing.T, path string) { move(t, path); make(t, path, text[:len(text)-9]) },
		"a damaged archive":        func(t *testing.T, path string) { move(t, path); make(t, path, damaged) },
		"an unknown format":        func(t *testing.T, path string) { move(t, path); make(t, path, []byte("plain text\n")) },
		"the archive, now damaged": func(t *testing.T, path string) { make(t, path, damaged) },
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			write(t, path, "three\n")
			if err := os.WriteFile(path+".1.gz", text, 0o666); err != nil {
				t.Fatal(err)
			}
			x := newRunner(t, path, Options{Unpack: unpackGzip})
			x.begin()
			f, err := siblingAt(path + ".1.gz")
			if err != nil {
				t.Fatal(err)
			}
			change(t, f.Path)
			_, _, before := x.s.search.lineage.Size()
			if g, err := x.s.search.openArchive(f); g != nil || err != lineage.ErrLater {
				t.Errorf("got %v, %v, want %v", g, err, lineage.ErrLater)
			}
			if _, _, n := x.s.search.lineage.Size(); n != before {
				t.Errorf("%d more archives are left out", n-before)
			}
			x.end()
		})
	}
}

// A compression program has created the archive, and has not written its first bytes yet. These may
// get the same modification time. If they do not come, their loss must be reported.
func TestArchivesWithoutTheirFirstBytesAreExaminedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "three\n")
	x := newRunner(t, path, Options{Unpack: unpackGzip})
	x.begin()
	for _, test := range []struct {
		text string
		age  time.Duration // of the last change
		seen time.Duration // time since this size was first seen
		want error
	}{
		{"", 0, 0, lineage.ErrLater},
		{"\x1f", 0, 0, lineage.ErrLater},
		{"\x1f", linger, 0, io.ErrUnexpectedEOF},
		{"\x1f", -time.Hour, 0, lineage.ErrLater}, // from the future
		{"\x1f", -time.Hour, linger, io.ErrUnexpectedEOF},
		{"?", 0, 0, errForeignPacking},
	} {
		if err := os.WriteFile(path+".1.gz", []byte(test.text), 0o666); err != nil {
			t.Fatal(err)
		}
		setTime(t, path+".1.gz", time.Now().Add(-test.age))
		f, err := siblingAt(path + ".1.gz")
		if err != nil {
			t.Fatal(err)
		}
		x.s.search.cut = map[lineage.ID]cutArchive{f.ID: {f.Size, time.Now().Add(-test.seen)}}
		lost := x.losses()
		if _, err := x.s.search.openArchive(f); !errors.Is(err, test.want) {
			t.Errorf("%+v: got %v", test, err)
		}
		if n := x.losses() - lost; (n == 1) != (test.want == io.ErrUnexpectedEOF) {
			t.Errorf("%+v: %d losses were reported", test, n)
		}
	}
	x.end()
}

// The folder does not change while a program writes the archive. All lines must be read.
func TestArchivesThatGrowInPlaceAreRead(t *testing.T) {
	for name, test := range map[string]struct {
		change   func(t *testing.T, path string)
		archived string
	}{
		"of a file between two looks": {func(t *testing.T, path string) { os.Remove(path) }, "two\n"},
		"of a truncated file":         {truncate, "one\ntwo\n"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			write(t, path, "one\n")
			x := newRunner(t, path, Options{Unpack: unpackGzip})
			x.begin()
			x.read("one\n")
			test.change(t, path)
			text := string(gzipped(t, test.archived))
			for _, part := range []string{"", text[:5], text[5:15], text[15:]} {
				write(t, path+".1.gz", part)
				if part == "" {
					write(t, path, "three\n")
					// the listing of an old folder is known to be current
					setTime(t, filepath.Dir(path), time.Now().Add(-time.Hour))
				}
				x.turn(2)
			}
			x.read("one\ntwo\nthree\n")
			x.end()
		})
	}
}

// A look while files are renamed and compressed must neither lose a file nor change the order. The
// steps of a weaver come only between two operations of a search; here files change during them,
// which once lost an archive in one of about 130 runs.
func TestLooksDuringRotationsLoseNothing(t *testing.T) {
	for i := range fuzztest.LongOr(1000, 20) {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			d := &day{t: t, path: filepath.Join(t.TempDir(), "app.log"), keepsTime: i%2 == 0}
			d.write(10)
			r := begin(t, newLog(), Options{Names: []string{d.path}, Unpack: unpackGzip, Poll: true, Interval: time.Hour})
			r.looking(func() { r.expect(d.path, d.all.String()) })
			for range 3 {
				during := time.AfterFunc(time.Duration(rand.N(30))*time.Millisecond, r.f.Look)
				days["twelve times"](d)
				during.Stop()
				r.looking(func() { r.expect(d.path, d.all.String()) })
			}
			if err := r.end(); err != nil {
				t.Error(err)
			}
			r.expect(d.path, d.all.String())
		})
	}
}
