package buildid

import (
	"context"
	"errors"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// collect returns a note function and the list to which it appends the Attempts.
func collect() (note func(Attempt), told *[]Attempt) {
	told = new([]Attempt)
	return func(a Attempt) { *told = append(*told, a) }, told
}

// below returns a line for each Attempt: its place relative to dir, a colon and the reason.
func below(dir string, told []Attempt) []string {
	var lines []string
	for _, a := range told {
		where := a.Where
		if rel, err := filepath.Rel(dir, a.Where); err == nil && filepath.IsAbs(a.Where) {
			where = filepath.ToSlash(rel)
		}
		lines = append(lines, where+": "+a.Reason)
	}
	return lines
}

func TestALinkedFileIsFoundWhereGDBLooks(t *testing.T) {
	content := program{id: wanted, sections: []string{".debug_info"}}.bytes(t)
	linkTo := func(target string) func(t *testing.T, path string) {
		return func(t *testing.T, path string) {
			if err := os.Symlink(filepath.Join(path, filepath.FromSlash(target)), path); err != nil {
				t.Skip(err)
			}
		}
	}
	tests := []struct {
		place string // below the test's folder; %s is that folder's own path
		near  func(t *testing.T, path string)
		told  int
	}{
		{"usr/bin/x.debug", nil, 0},
		{"usr/bin/.debug/x.debug", nil, 1},
		{"one/%s/usr/bin/x.debug", nil, 2},
		{"two/%s/usr/bin/x.debug", nil, 3},
		{"opt/real/x.debug", linkTo("../../../opt/real/x"), 4},
		{"two/%s/opt/real/x.debug", linkTo("../../../opt/real/x"), 7},
	}
	for _, tt := range tests {
		t.Run(tt.place, func(t *testing.T) {
			if runtime.GOOS == "windows" && strings.Contains(tt.place, "%s") {
				t.Skip("a path with a volume")
			}
			checkNoFileStaysOpen(t)
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			near := filepath.Join(dir, "usr", "bin", "x")
			put(t, filepath.Join(dir, "opt", "real", "x"), program{id: wanted}.bytes(t))
			if tt.near == nil {
				put(t, near, program{id: wanted}.bytes(t))
			} else {
				if err := os.MkdirAll(filepath.Dir(near), 0o777); err != nil {
					t.Fatal(err)
				}
				tt.near(t, near)
			}
			path := filepath.Join(dir, filepath.FromSlash(strings.Replace(tt.place, "%s", dir, 1)))
			put(t, path, content)
			note, told := collect()
			dirs := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
			f, err := findLink(t.Context(), link{"x.debug", crc32.ChecksumIEEE(content)}, near, dirs, mustParse(t, wanted), note)
			if err != nil {
				t.Fatalf("findLink: %v, told %v", err, *told)
			}
			defer f.Close()
			if f.Path() != path || f.unverified || f.OS() == nil || f.Where() != "debug link" {
				t.Errorf("got %s from %q, unverified %v; want %s", f.Path(), f.Where(), f.unverified, path)
			}
			if len(*told) != tt.told {
				t.Errorf("told %q, want %d things", below(dir, *told), tt.told)
			}
			checkContent(t, f)
		})
	}
}

func TestALinkedFileMustHaveTheSumAndNoOtherID(t *testing.T) {
	right := program{id: wanted}.bytes(t)
	tests := []struct {
		name    string
		id      string
		content []byte
		crc     uint32
		said    string // empty if the file is used
	}{
		{"right", wanted, right, crc32.ChecksumIEEE(right), ""},
		{"no ID in the program", "", right, crc32.ChecksumIEEE(right), ""},
		{"no ID in the debug file", wanted, program{}.bytes(t), crc32.ChecksumIEEE(program{}.bytes(t)), ""},
		{"another sum", wanted, right, crc32.ChecksumIEEE(right) ^ 1, "but the debug link has " + hex8(crc32.ChecksumIEEE(right)^1) + ": the file is from another build"},
		{"another sum, no ID at all", "", program{}.bytes(t), 1, "but the debug link has 00000001: the file is from another build"},
		{"another ID", another, right, crc32.ChecksumIEEE(right), "its build ID is " + wanted + ", not " + another},
		{"text", wanted, []byte("text"), crc32.ChecksumIEEE([]byte("text")), "not an ELF file"},
		{"text, no ID in the program", "", []byte("text"), crc32.ChecksumIEEE([]byte("text")), "not an ELF file"},
		{"empty", "", nil, 0, "not an ELF file"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			checkNoFileStaysOpen(t)
			dir := t.TempDir()
			put(t, filepath.Join(dir, "x.debug"), tt.content)
			var id ID
			if tt.id != "" {
				id = mustParse(t, tt.id)
			}
			note, told := collect()
			f, err := findLink(t.Context(), link{"x.debug", tt.crc}, filepath.Join(dir, "x"), nil, id, note)
			if tt.said == "" {
				if err != nil {
					t.Fatalf("findLink: %v, told %v", err, *told)
				}
				f.Close()
				return
			}
			if !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("findLink: %v, want fs.ErrNotExist", err)
			}
			if len(*told) == 0 || !strings.Contains((*told)[0].Reason, tt.said) {
				t.Errorf("told %q, want %q", *told, tt.said)
			}
		})
	}
}

func hex8(v uint32) string {
	id, _ := FromBytes([]byte{byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
	return id.String()
}

func TestALinkToTheProgramItselfIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	content := program{id: wanted}.bytes(t)
	put(t, filepath.Join(dir, "x"), content)
	note, told := collect()
	_, err := findLink(t.Context(), link{"x", crc32.ChecksumIEEE(content)}, filepath.Join(dir, "x"), nil, mustParse(t, wanted), note)
	if !errors.Is(err, fs.ErrNotExist) || len(*told) == 0 || (*told)[0].Reason != "the program itself, not its debug file" {
		t.Errorf("findLink: %v, told %q", err, *told)
	}
}

func TestNamesInLinksLeadNowhere(t *testing.T) {
	checkNoFileStaysOpen(t)
	dir := t.TempDir()
	content := program{id: wanted}.bytes(t)
	put(t, filepath.Join(dir, "canary"), content)
	put(t, filepath.Join(dir, "bin", "sub", "canary"), content)
	near := filepath.Join(dir, "bin", "x")
	put(t, near, content)
	for _, name := range []string{
		"", ".", "..", "/", "../canary", "sub/canary", "./canary", "canary/", "/canary", dir + "/canary", `..\canary`, `sub\canary`,
		"canary\x00", "\x00", "../bin/../canary", strings.Repeat("a", 300), strings.Repeat("../", 3000) + "canary",
	} {
		note, told := collect()
		f, err := findLink(t.Context(), link{name, crc32.ChecksumIEEE(content)}, near, []string{dir}, mustParse(t, wanted), note)
		if f != nil {
			t.Errorf("name %.40q: found %s", name, f.Path())
			f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) || len(*told) != 1 {
			t.Errorf("name %.40q: %v, told %q; want one thing", name, err, *told)
		}
	}
	note, told := collect()
	if _, err := findLink(t.Context(), link{"x.debug", 0}, "", []string{dir}, mustParse(t, wanted), note); !errors.Is(err, fs.ErrNotExist) || len(*told) != 1 {
		t.Errorf("without a program: %v, told %q", err, *told)
	}
}

func TestACancelledSumIsNoMiss(t *testing.T) {
	checkNoFileStaysOpen(t)
	dir := t.TempDir()
	content := append(program{id: wanted}.bytes(t), make([]byte, 3*sumChunk)...)
	put(t, filepath.Join(dir, "x.debug"), content)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := sum(ctx, cancelAfter{1, cancel, content}.reader(), int64(len(content))); !errors.Is(err, context.Canceled) {
		t.Errorf("sum: %v, want context.Canceled", err)
	}
	if _, err := findLink(ctx, link{"x.debug", 1}, filepath.Join(dir, "x"), nil, ID{}, nil); !errors.Is(err, context.Canceled) || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("findLink: %v, want context.Canceled", err)
	}
	got, err := sum(t.Context(), cancelAfter{-1, cancel, content}.reader(), int64(len(content)))
	if want := crc32.ChecksumIEEE(content); got != want || err != nil {
		t.Errorf("sum: %08x, %v; want %08x", got, err, want)
	}
}

// cancelAfter is a reader of content that calls cancel during one of its reads. reads is the number
// of that read, from 1.
type cancelAfter struct {
	reads   int
	cancel  func()
	content []byte
}

func (c cancelAfter) reader() *cancelAfter { return &c }

func (c *cancelAfter) ReadAt(p []byte, off int64) (int, error) {
	if c.reads--; c.reads == 0 {
		c.cancel()
	}
	return copy(p, c.content[off:]), nil
}

func TestASupplementaryFileIsFoundByNameAndByID(t *testing.T) {
	content := program{id: wanted}.bytes(t)
	tests := []struct {
		name, place, want string // %s is the test's folder
		told              []string
	}{
		{"%s/abs/alt", "abs/alt", "", nil},
		{"alt", "usr/lib/debug/.build-id/01/alt", "", nil},
		{"../../.dwz/x86_64/alt", "usr/lib/debug/.dwz/x86_64/alt", "", nil},
		{"/nowhere/.dwz/x86_64/alt", "two/.dwz/x86_64/alt", "", []string{"no such file", "no such file", "no such file"}},
		{"/nowhere/.dwz/x86_64/alt", "one/.dwz/alt", "", []string{"no such file", "no such file"}},
		{"../alt", "one/.dwz/alt", "", []string{"no such file"}},
		{"alt", "two/.build-id/ab/" + wanted[2:] + ".debug", "",
			[]string{"no such file", "no such file", "no such file", "no such file", "no such file"}},
		{"", "one/.build-id/ab/" + wanted[2:] + ".debug", "", []string{"an empty name"}},
		{strings.Repeat("a", 5000), "one/.build-id/ab/" + wanted[2:] + ".debug", "", []string{"a name of 5000 bytes is too long for a path"}},
		{"/x\x00", "one/.build-id/ab/" + wanted[2:] + ".debug", "", []string{"a name with a NUL byte is not a path"}},
	}
	for _, tt := range tests {
		t.Run(tt.place, func(t *testing.T) {
			if runtime.GOOS == "windows" {
				t.Skip("Unix paths")
			}
			checkNoFileStaysOpen(t)
			dir, err := filepath.EvalSymlinks(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			near := filepath.Join(dir, "usr", "lib", "debug", ".build-id", "01", "23.debug")
			put(t, near, program{id: "0123"}.bytes(t))
			path := filepath.Join(dir, filepath.FromSlash(tt.place))
			put(t, path, content)
			note, told := collect()
			dirs := []string{filepath.Join(dir, "one"), filepath.Join(dir, "two")}
			f, err := findAlt(t.Context(), mustParse(t, wanted), strings.Replace(tt.name, "%s", dir, 1), near, dirs, note)
			if err != nil {
				t.Fatalf("findAlt: %v, told %v", err, *told)
			}
			defer f.Close()
			if f.Path() != path || f.Where() != "supplementary file" {
				t.Errorf("got %s from %q, want %s", f.Path(), f.Where(), path)
			}
			var said []string
			for _, a := range *told {
				said = append(said, a.Reason)
			}
			if diff := cmp.Diff(said, tt.told); diff != "" {
				t.Errorf("told (-got +want):\n%s\n%q", diff, below(dir, *told))
			}
		})
	}
}

func TestASupplementaryFileMustHaveTheID(t *testing.T) {
	tests := []struct {
		name string
		put  func(t *testing.T, path string)
		said string
	}{
		{"another", func(t *testing.T, path string) { put(t, path, program{id: another}.bytes(t)) }, "its build ID is " + another + ", not " + wanted},
		{"none", func(t *testing.T, path string) { put(t, path, program{}.bytes(t)) }, "the file has no build ID"},
		{"FIFO", putFIFO, "not a regular file"},
		{"nothing", func(*testing.T, string) {}, "no such file"},
	}
	for _, tt := range tests {
		checkNoFileStaysOpen(t)
		dir := t.TempDir()
		path := filepath.Join(dir, "alt")
		tt.put(t, path)
		note, told := collect()
		f, err := findAlt(t.Context(), mustParse(t, wanted), path, filepath.Join(dir, "x"), []string{dir}, note)
		if f != nil {
			f.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) || !slices.Contains(*told, Attempt{path, tt.said}) {
			t.Errorf("%s: %v, told %q; want %q", tt.name, err, *told, tt.said)
		}
	}
	if _, err := findAlt(t.Context(), ID{}, "alt", "x", nil, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without an ID: %v, want fs.ErrNotExist", err)
	}
}

func TestOpenRegularTakesWhatIsRegular(t *testing.T) {
	checkNoFileStaysOpen(t)
	dir := t.TempDir()
	put(t, filepath.Join(dir, "text"), []byte("text"))
	f, err := OpenRegular(filepath.Join(dir, "text"), "test")
	if err != nil {
		t.Fatal(err)
	}
	if f.Size() != 4 || f.OS() == nil || f.Where() != "test" {
		t.Errorf("got %d bytes from %q", f.Size(), f.Where())
	}
	f.Close()
	if _, err := OpenRegular(dir, "test"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("folder: %v", err)
	}
	if _, err := OpenRegular(filepath.Join(dir, "none"), "test"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	fifo := filepath.Join(dir, "fifo")
	putFIFO(t, fifo)
	if _, err := OpenRegular(fifo, "test"); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("FIFO: %v", err)
	}
}
