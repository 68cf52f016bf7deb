//go:build unix

package written

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// The count of taken bytes must never decrease, and must never exceed the bytes that the reader can
// have taken.
func TestTakenBytesNeverDecrease(t *testing.T) {
	var written, left int64
	known := true
	taken := Taken(func() int64 { return written }, func() (int64, bool) { return left, known })
	for i, step := range []struct {
		written, left int64
		known         bool
		want          int64
	}{
		{0, 0, true, 0},
		{100, 100, true, 0},
		{100, 30, true, 70},
		{150, 100, true, 70}, // the system counts unread bytes in blocks, here 50 too many
		{150, 0, false, 70},  // its reader is gone
		{150, 20, true, 130},
		{120, 0, true, 130}, // the number of written bytes came late
	} {
		written, left, known = step.written, step.left, step.known
		if got := taken(); got != step.want {
			t.Errorf("step %d: %d bytes, want %d", i, got, step.want)
		}
	}
}

func TestTornFilesAreKnown(t *testing.T) {
	for content, want := range map[string]bool{"": false, "line\n": false, "line\ntorn": true} {
		path := filepath.Join(t.TempDir(), "out")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, mode := range []int{os.O_RDWR, os.O_WRONLY | os.O_APPEND} {
			f, err := os.OpenFile(path, mode, 0)
			if err != nil {
				t.Fatal(err)
			}
			if got := IsTorn(f); got != want {
				t.Errorf("%q, opened with %#x: %t, want %t", content, mode, got, want)
			}
			f.Close()
		}
	}
}

func TestErrorsOfFullDisksAreKnown(t *testing.T) {
	for _, err := range []error{syscall.ENOSPC, &os.PathError{Op: "write", Path: "a", Err: syscall.EDQUOT}, fmt.Errorf("a: %w", syscall.ENOSPC)} {
		if !IsFull(err) {
			t.Errorf("%v: not known", err)
		}
	}
	for _, err := range []error{nil, syscall.EIO, syscall.EPIPE} {
		if IsFull(err) {
			t.Errorf("%v: taken for a full disk", err)
		}
	}
}
