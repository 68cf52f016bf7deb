package containerlog

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

const at = "2026-11-20T10:00:00.000000070Z"

func TestLinesHaveTimeAndStream(t *testing.T) {
	long := strings.Repeat("x", maxPart)
	for _, test := range []struct {
		name   string
		form   Form
		writes []string
		want   string
	}{
		{"whole lines", CRI, []string{"one\ntwo\n", "\n"}, at + " stdout F one\n" + at + " stdout F two\n" + at + " stdout F \n"},
		{"a line in pieces", CRI, []string{"o", "n", "e\ntw", "o\n"}, at + " stdout F one\n" + at + " stdout F two\n"},
		{"the last line has no end", CRI, []string{"one\ntwo"}, at + " stdout F one\n" + at + " stdout P two\n"},
		{"a line of full length", CRI, []string{long, "\n"}, at + " stdout F " + long + "\n"},
		{"a longer line", CRI, []string{long + "y\n"}, at + " stdout P " + long + "\n" + at + " stdout F y\n"},
		{"a line of three parts, in pieces", CRI, []string{"y" + long, long + "\nz\n"},
			at + " stdout P y" + long[1:] + "\n" + at + " stdout P x" + long[1:] + "\n" + at + " stdout F x\n" + at + " stdout F z\n"},
		{"json-file", Docker, []string{"a \"b\" <\x1b\xff>\n", "two"},
			`{"log":"a \"b\" \u003c\u001b\ufffd\u003e\n","stream":"stdout","time":"` + at + "\"}\n" + `{"log":"two","stream":"stdout","time":"` + at + "\"}\n"},
		{"a longer line of json-file", Docker, []string{long + "y\n"},
			`{"log":"` + long + `","stream":"stdout","time":"` + at + "\"}\n" + `{"log":"y\n","stream":"stdout","time":"` + at + "\"}\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var out bytes.Buffer
			s := NewStream(&out, "stdout", test.form)
			s.now = func() time.Time { return time.Date(2026, 11, 20, 11, 0, 0, 70, time.FixedZone("", 3600)) }
			for _, w := range test.writes {
				if n, err := s.Write([]byte(w)); n != len(w) || err != nil {
					t.Fatal(n, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, out.String()); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// After a rename or removal, lines must go to a new file at the path. An unfinished last line of an
// earlier run must get a line end.
func TestFilesAreAppendedTo(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "log")
	if err := os.WriteFile(path, []byte("before\ntorn"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := Open(path, func(err error) { t.Error(err) }, nil)
	if err != nil {
		t.Fatal(err)
	}
	step := func(line string, do func() error) {
		t.Helper()
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	step("one\n", func() error { return nil })
	step("two\n", func() error { return os.Rename(path, path+".1") })
	step("three\n", func() error { return os.Truncate(path, 0) })
	removed := ""
	step("four\n", func() error { removed = read(t, path); return os.Remove(path) })
	if err := f.Close(); err != nil {
		t.Error(err)
	}
	got := read(t, path+".1") + "|" + removed + "|" + read(t, path)
	if want := "before\ntorn\none\n|three\n|four\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode()&^0o640 != 0 {
		t.Errorf("a new file has mode %v (%v), want at most %v", info.Mode(), err, mode)
	}
}

// While the file's folder is missing, Write must wait, and must lose no line.
func TestFilesThatCannotBeWrittenAreWaitedFor(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "folder")
	path := filepath.Join(dir, "log")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		var told []error
		stop := make(chan struct{})
		f, err := Open(path, func(err error) { told = append(told, err) }, stop)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		time.AfterFunc(10*retry+1, func() { os.Mkdir(dir, 0o700) })
		if _, err := f.Write([]byte("one\n")); err != nil {
			t.Fatal(err)
		}
		if len(told) != 1 || !errors.Is(told[0], fs.ErrNotExist) {
			t.Errorf("told %v, want once that there is no folder", told)
		}
		if got := read(t, path); got != "one\n" {
			t.Errorf("got %q", got)
		}
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		close(stop)
		if _, err := f.Write([]byte("two\n")); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("after the stop: %v", err)
		}
	})
}
