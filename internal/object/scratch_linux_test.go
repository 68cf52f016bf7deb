package object

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// A file for spilled sections must never have a name, so that a killed process leaves nothing.
func TestSpilledSectionsNeverHaveAName(t *testing.T) {
	dir := t.TempDir()
	if f, err := os.OpenFile(dir, os.O_RDWR|unix.O_TMPFILE, 0o600); err != nil {
		t.Skip("the file system has no files without a name")
	} else {
		f.Close()
	}
	watch, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(watch)
	if _, err := unix.InotifyAddWatch(watch, dir, unix.IN_CREATE|unix.IN_DELETE|unix.IN_MOVE); err != nil {
		t.Fatal(err)
	}
	file, b, err := scratch(dir, 1<<16)
	switch {
	case errors.Is(err, ErrInMemory):
	case err != nil:
		t.Fatal(err)
	default:
		if err := errors.Join(unix.Munmap(b), file.Close()); err != nil {
			t.Error(err)
		}
	}
	var events [4096]byte
	if n, err := unix.Read(watch, events[:]); err != unix.EAGAIN {
		t.Errorf("%d bytes of events, %v: a name was made or removed", n, err)
	}
}
