package buildid

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// listed writes an ids.txt into dir and returns its finder.
func listed(dir, lines string) *IDsFile {
	path := filepath.Join(dir, "ids.txt")
	if err := os.WriteFile(path, []byte(lines), 0o666); err != nil {
		panic(err)
	}
	return NewIDsFile(path)
}

func TestAnIDsFileNamesPaths(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "out", "a b.so"), program{id: wanted}.bytes(t))
	put(t, filepath.Join(dir, "other", "x.so"), program{id: wanted, sections: []string{".debug_info"}}.bytes(t))
	put(t, filepath.Join(dir, "other", "y.so"), program{id: another}.bytes(t))
	tests := []struct{ name, lines, want string }{
		{"relative", wanted + " a b.so\n", "out/a b.so"},
		{"relative, upwards", wanted + " ../other/x.so\n", "other/x.so"},
		{"absolute", wanted + " " + filepath.Join(dir, "other", "x.so") + "\n", "other/x.so"},
		{"upper case", strings.ToUpper(wanted) + " a b.so\n", "out/a b.so"},
		{"no newline at the end", wanted + " a b.so", "out/a b.so"},
		{"CRLF", wanted + " a b.so\r\n", "out/a b.so"},
		{"the better of two", wanted + " a b.so\n" + wanted + " ../other/x.so\n", "other/x.so"},
		{"between bad lines", "what\n\n" + wanted + " \n" + wanted + " a b.so\nabc x\n", "out/a b.so"},
		{"one that is not there and one that is", wanted + " none\n" + wanted + " a b.so\n", "out/a b.so"},
		{"another build", wanted + " ../other/y.so\n", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkNoFileStaysOpen(t)
			f, told, err := find(t, listed(filepath.Join(dir, "out"), tt.lines), Query{ID: mustParse(t, wanted)})
			got := ""
			if err == nil {
				got, _ = filepath.Rel(dir, f.Path())
			} else if !errors.Is(err, fs.ErrNotExist) {
				t.Error(err)
			}
			if got != filepath.FromSlash(tt.want) {
				t.Errorf("found %q, want %q; told %v", got, tt.want, told)
			}
		})
	}
}

func TestAnIDsFileSaysWhatIsWrongWithIt(t *testing.T) {
	dir := t.TempDir()
	id := mustParse(t, wanted)
	tests := []struct{ lines, said string }{
		{"", "none of its 0 lines has this build ID"},
		{another + " x\n", "none of its 1 line has this build ID"},
		{another + " x\nwhat\n\nwhat is this\n", "none of its 1 line has this build ID; 2 other lines are not of the form ID PATH (the first is line 2)"},
		{"abc x\n" + another + "\n" + another + " x\x00y\n", "none of its 0 lines has this build ID; 3 other lines are not of the form ID PATH (the first is line 1)"},
		{strings.Repeat("\n", maxIDsLines) + wanted + " x\n", "none of its 0 lines has this build ID; only its first 1048576 lines or 67108864 bytes are read"},
		{wanted + " " + strings.Repeat("x", maxPath+1), "none of its 0 lines has this build ID; 1 other lines are not of the form ID PATH (the first is line 1)"},
	}
	for _, tt := range tests {
		f := listed(dir, tt.lines)
		_, told, err := find(t, f, Query{ID: id})
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%.60q: %v", tt.lines, err)
		}
		if diff := cmp.Diff(told, []Attempt{{f.path, tt.said}}); diff != "" {
			t.Errorf("%.60q: told (-got +want):\n%s", tt.lines, diff)
		}
	}
}

func TestAnIDsFileIsReadAgainWhenItChanges(t *testing.T) {
	dir := t.TempDir()
	put(t, filepath.Join(dir, "x"), program{id: wanted}.bytes(t))
	path := filepath.Join(dir, "ids.txt")
	f := NewIDsFile(path)
	q := Query{ID: mustParse(t, wanted)}
	steps := []struct {
		name, lines string
		age         time.Duration
		found       bool
	}{
		{"missing", "", 0, false},
		{"made", wanted + " y\n", time.Hour, false},
		{"as long, later", wanted + " x\n", time.Minute, true},
		{"longer, no later", another + " x\n\n", time.Minute, false},
		{"removed", "", 0, false},
		{"made again", wanted + " x\n", time.Hour, true},
	}
	for _, step := range steps {
		if step.lines == "" {
			os.Remove(path)
		} else {
			put(t, path, []byte(step.lines))
			at := time.Now().Add(-step.age)
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		for range 2 {
			if _, told, err := find(t, f, q); (err == nil) != step.found {
				t.Errorf("%s: %v, told %v", step.name, err, told)
			}
		}
	}
	list := f.list
	if _, _, err := find(t, f, q); err != nil || f.list != list {
		t.Errorf("read again though it has not changed: %v", err)
	}
}

func TestAnIDsFileThatIsNoFile(t *testing.T) {
	checkNoFileStaysOpen(t)
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	putFIFO(t, fifo)
	for path, said := range map[string]string{fifo: "not a regular file", dir: "not a regular file", filepath.Join(dir, "none"): "no such file"} {
		_, told, err := find(t, NewIDsFile(path), Query{ID: mustParse(t, wanted)})
		if !errors.Is(err, fs.ErrNotExist) || len(told) != 1 || told[0] != (Attempt{path, said}) {
			t.Errorf("%s: %v, told %v; want %q", path, err, told, said)
		}
	}
}

func TestAHugeIDsFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ids.txt")
	put(t, path, []byte(another+" x\n"))
	if err := os.Truncate(path, 1<<40); err != nil {
		t.Skip(err)
	}
	_, told, err := find(t, NewIDsFile(path), Query{ID: mustParse(t, wanted)})
	if !errors.Is(err, fs.ErrNotExist) || len(told) != 1 || !strings.Contains(told[0].Reason, "only") {
		t.Errorf("%v, told %v", err, told)
	}
}

func FuzzIDsFile(f *testing.F) {
	f.Add([]byte(wanted + " a b\n" + another + " /c\r\n\nabc d\n"))
	f.Add([]byte("\x00\n  \n00 \x00\n" + strings.Repeat("a", 300) + " x"))
	f.Add(bytes.Repeat([]byte("00 x\n"), 100))
	f.Fuzz(func(t *testing.T, data []byte) {
		defer fuzztest.Watch(t, data)()
		fuzztest.Growth(t, data, func(data []byte) { parseIDs(data) })
		l := parseIDs(data)
		if !slices.IsSortedFunc(l.entries, func(a, b idsEntry) int { return strings.Compare(a.id.s, b.id.s) }) {
			t.Error("not sorted")
		}
		lines := 1 + bytes.Count(data, []byte("\n"))
		if len(l.entries)+l.bad > lines || (l.bad > 0) != (l.badLine > 0) || l.badLine > lines {
			t.Errorf("%d entries, %d bad lines from %d, of %d lines", len(l.entries), l.bad, l.badLine, lines)
		}
		for _, e := range l.entries {
			if e.id.IsZero() || notPath(e.path) != "" || strings.ContainsAny(e.path, "\n") {
				t.Errorf("entry %s %q", e.id, e.path)
			}
			if !slices.Contains(l.find(e.id), e.path) && len(l.find(e.id)) < maxCandidates {
				t.Errorf("%s %q is not found", e.id, e.path)
			}
			// The parsed entries can be written and parsed again without a change.
			again := parseIDs(fmt.Appendf(nil, "%s %s\n", e.id, e.path))
			if diff := cmp.Diff(again.entries, []idsEntry{e}, cmp.AllowUnexported(idsEntry{}, ID{})); diff != "" && filepath.Separator == '/' {
				t.Errorf("again (-got +want):\n%s", diff)
			}
		}
	})
}
