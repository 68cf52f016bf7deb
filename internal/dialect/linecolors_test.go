package dialect_test

import (
	"bytes"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/symfilter/symfilter/internal/dialect"
)

// colorings add colours to a line as programs do.
var colorings = map[string]func(line string) string{
	"around the line":   func(s string) string { return "\x1b[1m\x1b[31m" + s + "\x1b[0m" },
	"erases to the end": func(s string) string { return s + "\x1b[K" },
	"of tput":           func(s string) string { return "\x1b[31m" + s + "\x1b(B\x1b[m" },
	"around each word":  func(s string) string { return regexp.MustCompile(`[^\s]+`).ReplaceAllString(s, "\x1b[1;33m$0\x1b[m") },
	"around each number": func(s string) string {
		return regexp.MustCompile(`0x[0-9a-f]+`).ReplaceAllString(s, "\x1b[34m$0\x1b[m")
	},
	"around each path": func(s string) string {
		return regexp.MustCompile(`/[^ ()+\[\]]+`).ReplaceAllString(s, "\x1b[32m$0\x1b[m")
	},
}

var sequences = regexp.MustCompile(`\x1b(\[[0-9;]*[mK]|\(B)`)

// Colours must change neither frames nor answers. If the colours are removed from an answered line,
// the result must equal the answered line of a log without colours.
func TestColoursChangeNoFrame(t *testing.T) {
	archives, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(archives) == 0 {
		t.Fatalf("no samples: %v", err)
	}
	for _, path := range archives {
		archive, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		firmware := strings.HasPrefix(filepath.Base(path), "firmware")
		for i := 0; i+1 < len(archive.Files); i += 2 {
			log := string(archive.Files[i].Data)
			want := framesOf(log, firmware)
			for name, paint := range colorings {
				var b strings.Builder
				for line := range strings.Lines(log) {
					b.WriteString(paint(strings.TrimSuffix(line, "\n")) + "\n")
				}
				if diff := cmp.Diff(want, sequences.ReplaceAllString(framesOf(b.String(), firmware), "")); diff != "" {
					t.Errorf("%s, %s, colours %s (-want +got)\n%s", path, archive.Files[i].Name, name, diff)
				}
			}
		}
	}
}

func TestMarksInColourAreNotRejected(t *testing.T) {
	for _, line := range []string{
		"\x1b[31m#3  0x56302222a0e2 in ?? ()\x1b[0m",
		"#3  \x1b[34m0x56302222a0e2\x1b[m in ?? ()",
		"\x1b[33m#3\x1b[m 0x56302222a0e2 in ?? ()",
		"\x1b[31m    #0 <null> <null> (a+0x10f0e2\x1b[0m)",
		"/opt/a(+0x2a90)[0x5633834fba90]\x1b[0m",
		"/opt/a(+0x2a90\x1b[0m)",
		"[\x1b[34m0x5633834fba90\x1b[m]",
	} {
		mark := strings.LastIndex(line, "0x") - 1
		if !dialect.NewReader(nil).MayMatch([]byte(line), mark) {
			t.Errorf("the mark in %q is rejected", line)
		}
	}
	if dialect.NewReader(nil).MayMatch([]byte("room0x12 is free"), 3) {
		t.Error("a mark without a colour is not rejected")
	}
}

// The name of a module must have no escape sequence: colours are removed, and a frame with another
// sequence is rejected.
func TestModulesHaveNoEscapes(t *testing.T) {
	r := dialect.NewReader(nil)
	if l := r.Line([]byte("    #0 0x7fe653445249  (\x1b]0;title\a/lib/libc.so.6+0x27249)"), 1); l != nil {
		t.Errorf("got frames %+v, want none", l.Frames)
	}
	line := []byte("    #0 0x7fe653445249  (\x1b[35m/lib/\x1b[1mlibc.so.6\x1b[0m+0x27249)")
	l := r.Line(line, 2)
	if l == nil || l.Frames[0].Module != "/lib/libc.so.6" {
		t.Fatalf("got %+v, want a frame of /lib/libc.so.6", l)
	}
	want := [][]byte{[]byte("\x1b[35m"), []byte("\x1b[1m"), []byte("\x1b[0m")}
	if got := dialect.Colors(line); !slices.EqualFunc(got, want, bytes.Equal) {
		t.Errorf("got colours %q, want %q", got, want)
	}
}
