package filter

import (
	"io"
	"os"
	"testing"

	"github.com/symfilter/symfilter/report"
)

// Chromium logs frames of /proc/self/exe, which is symfilter itself here.
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
		{path: "/proc/self/exe", by: Dialects{PrefixMap: []PrefixMap{{Old: "/proc/self/exe", New: program}}}},
		{path: program, by: Dialects{Sysroot: "/proc/self/root"}},
		{path: program, by: Dialects{NoPaths: true}, want: report.ErrNoPaths},
	} {
		o := resolvingDialects(t)
		c.by.Images = []Image{{Name: "shop", Path: "/proc/self/exe"}}
		o.Dialects = c.by
		f := New(io.Discard, o)
		f.tracer.begin()
		if got := f.tracer.named(c.path).Err; got != c.want {
			t.Errorf("%s with %+v: %v, want %v", c.path, c.by, got, c.want)
		}
		if err := f.tracer.given(&c.by.Images[0]).Err; err != nil {
			t.Errorf("the operator's file: %v", err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
	}
}
