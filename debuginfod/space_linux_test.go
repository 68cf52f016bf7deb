package debuginfod

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
)

// A file that does not fit into the cache must be used, but not kept. No part of it may remain in
// the cache.
func TestENOSPC(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skip("a small file system cannot be mounted here: ", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	small, big := testID(1), testID(2)
	files := map[string][]byte{debugPath(small): elfFile(small, 100<<10), debugPath(big): elfFile(big, 3<<20)}
	s := serve(t, has(files))
	c := newClient(t, Options{CacheDir: dir}, s.URL)
	for _, id := range []buildid.ID{big, small, big} {
		got, notes, err := find(t, c, buildid.Query{ID: id})
		if err != nil || !bytes.Equal(got, files[debugPath(id)]) {
			t.Errorf("got %d bytes, %v, %q", len(got), err, notes)
		}
		var want []string
		if id == big {
			want = []string{"CACHE: the file could not be stored: no space left on device"}
		}
		if diff := cmp.Diff(notes, want); diff != "" {
			t.Error("notes (-got +want):\n" + diff)
		}
	}
	want := []string{small.String(), small.String() + "/debuginfo"}
	if diff := cmp.Diff(tree(t, dir), want); diff != "" {
		t.Error("cache (-got +want):\n" + diff)
	}
	// No byte is free, so that even the empty file of a miss cannot be created.
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 2<<20), 0o600); err == nil {
		t.Error("the file system is not full")
	}
	if _, notes, err := find(t, c, buildid.Query{ID: testID(3)}); err == nil || len(notes) != 2 {
		t.Errorf("a miss: got %v, %q", err, notes)
	}
	if got := leftovers(t, dir); got != nil {
		t.Errorf("left behind: %q", got)
	}
}

// Downloads must leave space on the file system for other programs.
func TestSomeRoomIsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=64m,mode=0700"); err != nil {
		t.Skip("a small file system cannot be mounted here: ", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	fits, tooBig := testID(1), testID(2)
	s := serve(t, has(map[string][]byte{debugPath(fits): elfFile(fits, 50<<20), debugPath(tooBig): elfFile(tooBig, 12<<20)}))
	c := newClient(t, Options{CacheDir: dir}, s.URL)
	for _, test := range []struct {
		id   buildid.ID
		want []string
	}{
		{fits, nil},
		// the file would leave only 2 of 64 MiB free
		{tooBig, []string{"CACHE: the file could not be stored: no space left on device"}},
	} {
		_, notes, err := find(t, c, buildid.Query{ID: test.id})
		if diff := cmp.Diff(notes, test.want); diff != "" || err != nil {
			t.Errorf("%s: %v, notes (-got +want):\n%s", test.id, err, diff)
		}
	}
	if got, want := tree(t, dir), []string{fits.String(), fits.String() + "/debuginfo"}; !cmp.Equal(got, want) {
		t.Errorf("the cache holds %q, want %q", got, want)
	}
}

// Files in a read-only cache must be used. New files must be used, too, but not kept.
func TestReadOnlyCacheIsRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skip("a file system cannot be mounted here: ", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	put(t, dir, testID(1).String()+"/debuginfo", elfFile(testID(1), 0), 0o400)
	if err := syscall.Mount("", dir, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	s := serve(t, sends(elfFile(testID(2), 0)))
	c := newClient(t, Options{CacheDir: dir}, s.URL)
	if _, notes, err := find(t, c, query(1)); err != nil || notes != nil {
		t.Errorf("what is there: got %v, %q", err, notes)
	}
	_, notes, err := find(t, c, query(2))
	want := []string{"CACHE: the file could not be stored: read-only file system"}
	if diff := cmp.Diff(notes, want); diff != "" || err != nil {
		t.Errorf("what is not: %v, notes (-got +want):\n%s", err, diff)
	}
}

// If a file cannot be stored anywhere, the error must report that, and must not be a miss.
func TestNowhereToKeepAFile(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=1m,mode=0700"); err != nil {
		t.Skip("a small file system cannot be mounted here: ", err)
	}
	defer syscall.Unmount(dir, syscall.MNT_DETACH)
	t.Setenv("TMPDIR", dir)
	s := serve(t, sends(elfFile(testID(1), 3<<20)))
	_, notes, err := find(t, newClient(t, Options{CacheDir: filepath.Join(dir, "cache")}, s.URL), buildid.Query{ID: testID(1)}, s.URL, "S")
	if err == nil || len(notes) != 1 || notes[0] != "S: the file could not be stored: no space left on device" || strings.Contains(err.Error(), "not exist") {
		t.Errorf("got %v, %q", err, notes)
	}
	if got, err := os.ReadDir(dir); err != nil || len(got) != 1 {
		t.Errorf("left behind: %v, %v", got, err)
	}
}
