package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/prefixmap"
	"github.com/symfilter/symfilter/internal/source"
	"github.com/symfilter/symfilter/symbolize"
)

// Debug information may name any file. Only regular files of at most 16 MiB below the roots are
// opened, and opening never blocks.
func TestNothingButFilesBelowTheRootsIsOpened(t *testing.T) {
	base := t.TempDir()
	root := filepath.Join(base, "named")
	const canary = "the canary sings\n"
	put(t, base, "canary", canary)
	put(t, root, "a.c", "int a;\n")
	put(t, root, "sub/b.c", "int b;\n")
	put(t, root, "new\nline\x1b.c", "int c;\n")
	put(t, root, "large.c", strings.Repeat("1234567\n", 17<<20/8))
	put(t, root, "largest.c", strings.Repeat("1234567\n", 16<<20/8))
	put(t, root, "nul.c", "\x00\x00\n\x00")
	put(t, root, "empty.c", "")
	for name, to := range map[string]string{
		"out": "../canary", "away": filepath.Join(base, "canary"), "folder": base, "in": "sub/b.c", "circle": "circle",
		"proc": "/proc/self/environ", "up": "..", "absolute": filepath.Join(root, "a.c"),
	} {
		if err := os.Symlink(to, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(root, "fifo"), 0o600), syscall.Mkfifo(filepath.Join(base, "fiforoot"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mknod(filepath.Join(root, "zero"), syscall.S_IFCHR|0o600, 1<<8|5); err != nil {
		t.Log("no device of its own: ", err)
	}
	var explained []string
	find := func(o source.Options, path string) string {
		explained = nil
		o.Explain = func(s string) { explained = append(explained, s) }
		f := source.NewFinder(o)
		defer f.Close()
		s := f.Snippet(symbolize.Location{Name: "m"}, &symbolize.Frame{File: path, Line: 1})
		if len(s.Lines) == 0 {
			return ""
		}
		return string(s.Lines[0])
	}
	below := roots(t, root)
	t.Chdir(base)
	for path, want := range map[string]string{
		root + "/a.c":                      "int a;",
		"a.c":                              "int a;",
		"named/a.c":                        "int a;", // of the current folder
		"./named/sub/../a.c":               "int a;",
		root + "/sub/../a.c":               "int a;",
		root + "/in":                       "int b;",
		root + "/new\nline\x1b.c":          "int c;",
		root + "/largest.c":                "1234567",
		root + "/nul.c":                    "\x00\x00",
		root + "/empty.c":                  "",
		root + "/large.c":                  "",
		root + "/fifo":                     "",
		root + "/zero":                     "",
		root + "/sub":                      "",
		root:                               "",
		"/":                                "",
		".":                                "",
		"..":                               "",
		root + "/out":                      "",
		root + "/away":                     "",
		root + "/absolute":                 "", // absolute links lead out
		root + "/proc":                     "",
		root + "/circle":                   "",
		root + "/folder/canary":            "",
		root + "/up/canary":                "",
		root + "/../canary":                "",
		root + "/../named/../canary":       "",
		root + "/sub/../../canary":         "",
		root + "x/../canary":               "",
		base + "/canary":                   "",
		"canary":                           "",
		"../canary":                        "",
		"named/../canary":                  "",
		"/proc/self/environ":               "",
		"/dev/zero":                        "",
		root + "/a.c\x00":                  "",
		"a.c\x00/../../canary":             "",
		"\x00":                             "",
		root + "/" + "\xff\xfe":            "",
		strings.Repeat("../", 100) + "etc": "",
		strings.Repeat("x", 1<<20):         "",
		strings.Repeat("x/", 30<<10):       "",
	} {
		if got := find(source.Options{Roots: below}, path); got != want {
			t.Errorf("%.80q: got %q, want %q", path, got, want)
		}
		for _, s := range explained {
			if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f }) {
				t.Errorf("%.80q: controls in the message %q", path, s)
			}
		}
		if got := find(source.Options{}, path); got != "" {
			t.Errorf("without a root, %.80q: got %q", path, got)
		}
	}
	// a path is matched with the roots after the prefix map is applied
	for _, m := range []buildid.PrefixMap{{Old: "/src", New: base}, {Old: "/src", New: root + "/.."}, {Old: "/src", New: root + "/up"}, {Old: "/src", New: ".."}} {
		if got := find(source.Options{Roots: below, PrefixMap: prefixmap.Maps{m}}, "/src/canary"); got != "" {
			t.Errorf("%v: got %q", m, got)
		}
	}
	for _, name := range []string{"none", "canary", "fiforoot"} {
		if r, err := source.OpenRoots([]string{name, root}); err == nil || len(r) != 1 {
			t.Errorf("root %s: got %v, %v", name, r, err)
		} else {
			r.Close()
		}
	}
}

// Files are kept up to a budget, however many there are.
func TestKeptFilesAreBounded(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		put(t, dir, name, strings.Repeat(name+"\n", 12<<20/2))
	}
	var found []string
	f := source.NewFinder(source.Options{Roots: roots(t, dir), Explain: func(s string) { found = append(found, s[:1]) }})
	defer f.Close()
	for _, name := range strings.Split("abcaabcdeab", "") {
		s := f.Snippet(symbolize.Location{Name: "m"}, &symbolize.Frame{File: name, Line: 6 << 20})
		if len(s.Lines) != 1 || string(s.Lines[0]) != name {
			t.Fatalf("%s: got %q", name, s.Lines)
		}
	}
	if got, want := found, strings.Split("abcdeab", ""); !slices.Equal(got, want) {
		t.Errorf("read: got %q, want %q", got, want)
	}
}

func FuzzTemplate(f *testing.F) {
	f.Add("https://code.example/{rel}?{line}#{build_id}", "/src", "a.c", uint32(1), uint32(2))
	f.Add("vscode", "", "/src/\x1b]8;;\x07/\u202e.c", uint32(1), uint32(0))
	f.Add("cgit:https://a/{b}@{rev}", "", "../a b.c", uint32(1<<32-1), uint32(0))
	f.Fuzz(func(t *testing.T, text, dir, file string, line, column uint32) {
		template, err := source.ParseTemplate(text, "https://symbols.example/x")
		if err != nil {
			return
		}
		k := source.Linker{Template: template, PrefixMap: prefixmap.Maps{{Old: dir, New: "new"}}}
		got, ok := k.Append(nil, ledger, &symbolize.Frame{File: dir + file, Line: line, Column: column})
		if !ok {
			if len(got) > 0 {
				t.Fatalf("no link, but %q", got)
			}
			return
		}
		scheme, _, _ := strings.Cut(strings.ToLower(string(got)), ":")
		if len(got) > 2000 || strings.ContainsFunc(string(got), func(r rune) bool { return r < 0x21 || r > 0x7e }) ||
			slices.Contains([]string{"javascript", "data", "vbscript", ""}, scheme) {
			t.Fatalf("%q, %q: got %q", text, dir+file, got)
		}
	})
}
