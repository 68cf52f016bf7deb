//go:build unix

package follow

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/symfilter/symfilter/internal/lineage"
)

func TestNextRunsReportLostRotatedFiles(t *testing.T) {
	const off, size = 400, 600
	text := strings.Repeat("a line of the log..\n", size/20)
	for name, test := range map[string]struct {
		size   int64 // size of the rotated file in the checkpoint; 0: it was read to its end
		change func(t *testing.T, x *stepper, path string)
		want   string
		told   string
	}{
		"there": {size, func(*testing.T, *stepper, string) {}, text[off:], ""},
		"gone": {size, func(t *testing.T, _ *stepper, path string) { remove(t, path) }, "",
			"app.log: a rotated file that was read up to byte 400 is gone; lines written since .* are lost, at least 200 bytes"},
		"gone, after it was read": {0, func(t *testing.T, _ *stepper, path string) { remove(t, path) }, "", ""},
		"in a damaged archive": {size, func(t *testing.T, _ *stepper, path string) {
			packed := gzipped(t, text)
			write(t, path+".gz", string(packed[:len(packed)-size/2]))
			setTime(t, path+".gz", time.Now().Add(-time.Hour))
			remove(t, path)
		}, "", "app.log: a rotated file that was read up to byte 400 is in app.log.1.gz, which is damaged after .* bytes of its contents; .*"},
		"read by another": {size, func(t *testing.T, x *stepper, path string) {
			g, err := x.s.f.disk.openGeneration(path)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			x.s.f.newSource("other.log", filepath.Join(filepath.Dir(path), "other.log")).search.lineage.Claim(g)
		}, "", "app.log: app.log.1 is the same file as other.log, which is already followed"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "app.log")
			write(t, path+".1", text)
			write(t, path, "three\n")
			x := newStepper(t, path, Options{Unpack: unpackGzip})
			place := func(path string, off int64) lineage.Mark {
				g, err := x.s.f.disk.openGeneration(path)
				if err != nil {
					t.Fatal(err)
				}
				defer g.Close()
				if err := g.seek(off); err != nil {
					t.Fatal(err)
				}
				m, err := g.mark()
				if err != nil {
					t.Fatal(err)
				}
				return m
			}
			x.s.origin.saved = &savedSource{Path: path, Beside: new(string), ListsArchives: true, Reading: []savedReading{{Mark: place(path+".1", off), Size: test.size}, {Mark: place(path, 6)}}}
			test.change(t, x, path+".1")
			x.read(test.want)
			if told := x.messages(); !regexp.MustCompile("^" + test.told + "$").MatchString(told) {
				t.Errorf("told %s, want %s", told, test.told)
			}
		})
	}
}

// A late line makes a file of the checkpoint younger than the archive of the next file. The next
// run must read that archive all the same.
func TestNextRunsReadArchivesOfFilesBeforeALateLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "app.log")
		o := Options{Names: []string{path}, State: path + ".state", Unpack: unpackGzip, Poll: true, Interval: time.Second}
		l := newLog()
		write(t, path, "one\n")
		setTime(t, path, time.Now()) // the fake clock differs from the file system's
		r := begin(t, l, o)
		r.expect(path, "one\n")
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		rename(t, path, path+".2")
		write(t, path+".1", "two\n")
		write(t, path+".2", "late\n")
		setTime(t, path+".1", time.Now().Add(time.Second))
		setTime(t, path+".2", time.Now().Add(time.Minute))
		compress(t, path+".1", true)
		write(t, path, "three\n")
		r = begin(t, l, o)
		r.expect(path, "one\nlate\ntwo\nthree\n")
		if err := r.end(); err != nil {
			t.Fatal(err)
		}
		l.expectMessages(t, "")
	})
}

func TestArchivesLeftOutAsOlderAreNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.log")
	write(t, path, "one\n")
	x := newStepper(t, path, Options{Unpack: unpackGzip})
	x.read("one\n")
	write(t, path+".2.gz", string(gzipped(t, "zero\n")))
	setTime(t, path+".2.gz", time.Now().Add(-time.Hour))
	var told []string
	x.s.f.o.Notify = func(e Event) {
		if e.Routine {
			told = append(told, e.Message)
		}
	}
	rename(t, path, path+".1")
	write(t, path, "two\n")
	x.read("one\ntwo\n")
	const want = "1 compressed file left out as older than the lines that were read; the first is app.log.2.gz"
	if len(told) == 0 || told[0] != want {
		t.Errorf("got %q, want %q first", told, want)
	}
}

func remove(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
}
