package filter

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/report"
)

// If a file at a logged path was changed after the log was written, it must need a stronger proof.
// The time of an operator's file must not matter.
func TestFilesYoungerThanTheLogNeedMoreProof(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	changed := changedAt(program)
	at := func(logged time.Time) func() time.Time { return func() time.Time { return logged } }
	for _, c := range []struct {
		name string
		by   Dialects
		want bool
	}{
		{"times are not known", Dialects{}, false},
		{"the time is not known", Dialects{Logged: at(time.Time{})}, false},
		{"logged before", Dialects{Logged: at(changed.Add(-time.Second))}, true},
		{"logged after", Dialects{Logged: at(changed.Add(time.Second))}, false},
		{"at another path", Dialects{Logged: at(changed.Add(-time.Second)), PrefixMap: []buildid.PrefixMap{{Old: "/opt/shop", New: program}}}, false},
	} {
		o := resolvingDialects(t)
		o.Dialects = c.by
		f := New(io.Discard, o)
		f.tracer.begin()
		name := program
		if len(c.by.PrefixMap) > 0 {
			name = c.by.PrefixMap[0].Old
		}
		if m := f.tracer.imageAt(name); m.Err != nil || m.Younger != c.want {
			t.Errorf("%s: younger: %t, want %t; %v", c.name, m.Younger, c.want, m.Err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// Paths that lead to this process's own files must be refused, unless PrefixMap translates them.
// For example, Chromium logs frames of /proc/self/exe, which is symfilter's file here.
func TestFilesOfOwnProcessAreNotThoseOfTheLog(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		path string
		by   Dialects
		want error
	}{
		{path: "/proc/self/exe", want: errProc},
		{path: "//proc/./self/exe", want: errProc},
		{path: "/usr/../proc/self/exe", want: errProc},
		{path: "/proc/thread-self/root" + program, want: errProc},
		{path: "/dev/fd/0", want: errProc},
		{path: "/proc/self/exe", by: Dialects{Sysroot: "/"}, want: errProc},
		{path: "/proc/self/exe", by: Dialects{PrefixMap: []buildid.PrefixMap{{Old: "/proc/self/exe", New: program}}}},
		{path: program, by: Dialects{Sysroot: "/proc/self/root"}},
		{path: program, by: Dialects{NoPaths: true}, want: report.ErrNoPaths},
	} {
		o := resolvingDialects(t)
		c.by.Images = []Image{{Name: "shop", Path: "/proc/self/exe"}}
		o.Dialects = c.by
		f := New(io.Discard, o)
		f.tracer.begin()
		if got := f.tracer.imageAt(c.path).Err; got != c.want {
			t.Errorf("%s with %+v: %v, want %v", c.path, c.by, got, c.want)
		}
		if err := f.tracer.imageOfOperator(&c.by.Images[0]).Err; err != nil {
			t.Errorf("the operator's file: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// If the file of a mapping has another name than the frame's module, the file must be a guess: the
// mapping may be from another process.
func TestMappingsOfOtherNamesAreGuesses(t *testing.T) {
	f := New(io.Discard, resolvingDialects(t))
	defer f.Close()
	f.o.Dialects.Images = nil
	f.tracer.begin()
	f.tracer.reader.Facts().AddMap(dialect.Map{Start: 0x1000, End: 0x2000, Path: "/opt/shop/libledger.so.1.2", Code: true})
	for name, want := range map[string]bool{"": false, "libledger.so": false, "libledger.so.1": false, "libshop.so": true, "shop: idle": true} {
		m := f.tracer.open(&dialect.Frame{LoggedPlace: dialect.LoggedPlace{Module: name, Addr: 0x1234}})
		if m.Path != "/opt/shop/libledger.so.1.2" || m.Guessed != want {
			t.Errorf("%q: %s, guessed: %v, want %v", name, m.Path, m.Guessed, want)
		}
	}
}

// The number of a frame must depend only on earlier frames of the same Context.
func TestNumbersOfFramesAreOfTheirContext(t *testing.T) {
	const id = "(BuildId: a0a1a2a3a4a5a6a7)\n"
	first, second := []byte("    #0 0x55d01234017a  (/opt/shop/a.out+0x40017a) "+id), []byte("    #1 0x55d01234018d  (/opt/shop/a.out+0x40018d) "+id)
	o := Options{Symbolizer: testSymbolizer(t), Patience: patient}
	l := NewLines(o)
	var one, other Context
	l.Append(nil, &one, first)
	got, _ := l.Append(nil, &other, second)
	var alone Context
	want, _ := NewLines(o).Append(nil, &alone, second)
	if string(want) == string(second) {
		t.Errorf("the frame is not resolved: %s", want)
	}
	if string(got) != string(want) {
		t.Errorf("after a record of another log:\n%s\nalone:\n%s", got, want)
	}
}

// Names without a file must not count towards the maximum number of files of a trace.
func TestALibraryIsFoundAfterManyThatAreNot(t *testing.T) {
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	o := resolvingDialects(t)
	o.Dialects.Images, o.Dialects.Folders = nil, []string{t.TempDir()}
	if err := os.Symlink(program, filepath.Join(o.Dialects.Folders[0], "libledger.so")); err != nil {
		t.Fatal(err)
	}
	f := New(io.Discard, o)
	defer f.Close()
	f.tracer.begin()
	for i := range maxImages {
		f.tracer.imageNamed(fmt.Sprintf("libnone%d.so", i))
	}
	if m := f.tracer.imageNamed("libledger.so"); m.Err != nil {
		t.Error(m.Err)
	}
}
