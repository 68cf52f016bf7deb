package doctor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

const inventoryID = "779e1ed32e11627838c3d1658cabab0af2a008bd"

// makeFiles makes files below dir.
func makeFiles(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// The summary must name the remedies that files on this machine suggest.
func TestRemedies(t *testing.T) {
	inventory, err := os.ReadFile(filepath.Join("..", "..", "testdata", "debug", ".build-id", inventoryID[:2], inventoryID[2:]+".debug"))
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	makeFiles(t, dir, map[string]string{
		"bin/inventory":              string(inventory),
		"other/inventory":            "another file",
		"tree/.build-id/aa/b.debug":  "",
		"symsorter/0f/b/debuginfo":   "",
		"wrong/notes":                "",
		"urls/one.urls":              "# Debian\nhttps://debuginfod.debian.net\n",
		"urls/two.urls":              "https://debuginfod.elfutils.org/ ima:ignore\n",
		"none/README":                "",
		"lists/inventory:amd64.list": "/.\n" + dir + "/other/inventory\n" + dir + "/bin\n" + dir + "/bin/inventory\n",
		"lists/another.list":         dir + "/other/inventory\n" + dir + "/nowhere/inventory\n" + dir + "/bin/inventory.conf\n",
		"lists/libc6:amd64.md5sums":  dir + "/bin/inventory\n",
	})
	at := func(name string) string { return filepath.Join(dir, name) }
	app := symbolize.Unresolved{ID: mustID(t, inventoryID), Name: "/opt/inventory", Frames: 2}
	lib := symbolize.Unresolved{ID: mustID(t, "aabbcc"), Name: "libc.so.6", Frames: 1}
	late := lib
	late.Err = fmt.Errorf("build ID aabbcc: %w", symbolize.ErrPending)
	gone := symbolize.Unresolved{Name: "/opt/app", Frames: 1, Err: report.ErrNoFile}
	kernel := symbolize.Unresolved{Name: "vmlinux", Frames: 1, Err: judge.ErrKernel}
	fedora := map[string]symbolize.Report{"libc.so.6": {Path: "/lib64/libc.so.6", Package: symbolize.Package{Type: "rpm", Name: "glibc"}}}
	for _, test := range []struct {
		name    string
		s       Search
		modules []symbolize.Unresolved
		known   map[string]symbolize.Report
		lists   string
		urls    string
		want    string
	}{
		{name: "nothing is known", modules: []symbolize.Unresolved{lib}, want: "--debug-file-directory and --symbol-path name folders of debug files"},
		{name: "no module", want: ""},
		{name: "folders that are trees, and one that is not", modules: []symbolize.Unresolved{lib},
			s:    Search{DebugDirs: []string{at("tree"), at("tree/.build-id"), at("symsorter"), at("wrong"), at("nowhere")}},
			want: "--debug-file-directory " + at("wrong") + " has no .build-id folder"},
		{name: "a package of Debian, by the build ID of an installed file", modules: []symbolize.Unresolved{lib, app}, lists: "lists", want: "install inventory-dbgsym"},
		{name: "an installed file of another build", modules: []symbolize.Unresolved{{ID: lib.ID, Name: app.Name}}, lists: "lists",
			want: "--debug-file-directory and --symbol-path name folders of debug files"},
		{name: "a package that is noted in the file", modules: []symbolize.Unresolved{app, lib}, known: fedora, lists: "lists", want: "install glibc-debuginfo inventory-dbgsym"},
		{name: "packages do not help without the system's folder", modules: []symbolize.Unresolved{app}, lists: "lists",
			s: Search{NoDefaultDebugDirs: true}, want: "--debug-file-directory and --symbol-path name folders of debug files"},
		{name: "a file with debug information is enough", modules: []symbolize.Unresolved{app}, lists: "lists", urls: "urls",
			known: map[string]symbolize.Report{app.Name: {Path: "x", Holds: symbolize.DebugInfo}}, want: ""},
		{name: "servers of the distribution", modules: []symbolize.Unresolved{lib}, urls: "urls",
			want: "--debuginfod asks https://debuginfod.debian.net https://debuginfod.elfutils.org/"},
		{name: "servers are asked", modules: []symbolize.Unresolved{lib}, urls: "urls", s: Search{URLs: []string{"http://x"}},
			want: "--debug-file-directory and --symbol-path name folders of debug files"},
		{name: "no network", modules: []symbolize.Unresolved{lib}, urls: "urls", s: Search{NoServers: "--offline"},
			want: "--debug-file-directory and --symbol-path name folders of debug files"},
		{name: "files that are still looked for", modules: []symbolize.Unresolved{late}, want: "--wait 90s waits longer for debug files"},
		{name: "a kernel from another machine", modules: []symbolize.Unresolved{kernel}, lists: "lists", urls: "urls",
			want: "--image vmlinux names the kernel's file, --image MODULE=FILE a module's"},
		{name: "a report from another machine", modules: []symbolize.Unresolved{gone}, lists: "lists", urls: "urls", want: "--sysroot names a folder with the files of another machine"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := remedier{s: &test.s, urls: at("none"), module: func(_ buildid.ID, name string) symbolize.Report { return test.known[name] }}
			if test.lists != "" {
				r.lists = at(test.lists)
			}
			if test.urls != "" {
				r.urls = at(test.urls)
			}
			if diff := cmp.Diff(test.want, strings.Join(r.remedies(test.modules), "; ")); diff != "" {
				t.Errorf("want (-), got (+):\n%s", diff)
			}
		})
	}
}

func TestDebugPackages(t *testing.T) {
	for _, test := range []struct{ kind, name, want string }{
		{"deb", "hello", "hello-dbgsym"},
		{"deb", "libc6", "libc6-dbg"},
		{"deb", "linux-image-6.1.0-13-amd64", "linux-image-6.1.0-13-amd64-dbg"},
		{"rpm", "glibc", "glibc-debuginfo"},
		{"apk", "musl", ""},
		{"deb", "", ""},
	} {
		if got := debugPackage(test.kind, test.name); got != test.want {
			t.Errorf("%s %s: got %q, want %q", test.kind, test.name, got, test.want)
		}
	}
}

// At most maxOpened files may be opened for a module, however often its name is in dpkg's lists.
func TestFewFilesOfPackagesAreOpened(t *testing.T) {
	dir := t.TempDir()
	data, err := os.ReadFile(filepath.Join("..", "..", "testdata", "debug", ".build-id", inventoryID[:2], inventoryID[2:]+".debug"))
	if err != nil {
		t.Fatal(err)
	}
	last := filepath.Join(dir, "last", "README")
	makeFiles(t, dir, map[string]string{
		"last/README": string(data),
		"few/p.list":  strings.Repeat("/nowhere/README\n", maxOpened-1) + last + "\n",
		"many/p.list": strings.Repeat("/nowhere/README\n", maxOpened) + last + "\n",
	})
	readme := []symbolize.Unresolved{{ID: mustID(t, inventoryID), Name: "README"}}
	for lists, want := range map[string][]string{"few": {"p-dbgsym"}, "many": nil} {
		got, err := installers(filepath.Join(dir, lists), readme)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, want (-), got (+):\n%s", lists, err, diff)
		}
	}
}

// eachBlock must read a list in blocks, up to a number of bytes. It must pass on whole lines, even
// if a line begins in one block and ends in the next.
func TestBlocksOfAList(t *testing.T) {
	path := filepath.Join(t.TempDir(), "p.list")
	makeFiles(t, filepath.Dir(path), map[string]string{"p.list": "/.\n/usr\n/usr/bin\n/usr/bin/x"})
	for _, test := range []struct {
		buffer int
		left   int64
		want   string
		rest   int64
	}{
		{64, 100, "/.\n/usr\n/usr/bin\n", 73},
		{11, 100, "/.\n/usr\n|/usr/bin\n", 73},
		{10, 100, "/.\n/usr\n|/usr/bin\n", 73},
		{64, 9, "/.\n/usr\n", 0},
		{8, 100, "/.\n/usr\n", 84}, // the next line is longer
	} {
		var got []string
		rest := eachBlock(path, test.left, make([]byte, test.buffer), func(text []byte) {
			if len(text) > 0 {
				got = append(got, string(text))
			}
		})
		if all := strings.Join(got, "|"); all != test.want || rest != test.rest {
			t.Errorf("buffer of %d, %d bytes: got %q, %d left, want %q, %d", test.buffer, test.left, all, rest, test.want, test.rest)
		}
	}
	if rest := eachBlock(path+".missing", 7, make([]byte, 64), func([]byte) { t.Error("a missing list has text") }); rest != 7 {
		t.Errorf("%d left after a missing list, want 7", rest)
	}
}
