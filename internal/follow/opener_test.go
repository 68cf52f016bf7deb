package follow

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/lineage"
)

// Rotation moves an archive while it is opened: another file gets its path. The archive must be
// examined again, whatever the other file is.
func TestArchivesThatLoseTheirPathAreExaminedAgain(t *testing.T) {
	text := gzipped(t, "one\n")
	damaged := bytes.Clone(gzipped(t, strings.Repeat("two\n", 100)))
	damaged[10] = 0xff // an invalid block type
	for name, other := range map[string][]byte{
		"an archive":                     gzipped(t, "two\n"),
		"an empty file":                  {},
		"the first byte":                 text[:1],
		"a part of an archive":           text[:len(text)-9],
		"a damaged archive":              damaged,
		"a file that cannot be unpacked": []byte("plain text\n"),
		"none":                           nil,
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
			rename(t, path+".1.gz", path+".2.gz")
			if other != nil {
				if err := os.WriteFile(path+".1.gz", other, 0o666); err != nil {
					t.Fatal(err)
				}
				setTime(t, path+".1.gz", f.ModTime.Add(-time.Hour)) // no longer being written
			}
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

// A compression program has created the archive, and has not written it yet. Its first bytes may
// get the same modification time.
func TestArchivesWithoutTheirFirstBytesAreExaminedAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "three\n")
	x := newRunner(t, path, Options{Unpack: unpackGzip})
	x.begin()
	for _, part := range []string{"", "\x1f"} {
		for old, want := range map[bool]error{false: lineage.ErrLater, true: errForeignPacking} {
			if err := os.WriteFile(path+".1.gz", []byte(part), 0o666); err != nil {
				t.Fatal(err)
			}
			if old {
				setTime(t, path+".1.gz", time.Now().Add(-linger))
			}
			f, err := siblingAt(path + ".1.gz")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := x.s.search.openArchive(f); err != want {
				t.Errorf("%q, old=%v: got %v, want %v", part, old, err, want)
			}
		}
	}
	x.end()
}

// A look while files are renamed and compressed must neither lose a file nor change the order.
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
