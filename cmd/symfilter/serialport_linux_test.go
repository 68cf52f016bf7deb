package main

import (
	"syscall"
	"testing"
)

// The empty name must not be a serial port. A flag that was not given has the empty name, and for a
// port the sandbox allows access to devices.
func TestEmptyNamesAreNoPorts(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, dir := range []string{".", "/dev/shm", "/"} {
		t.Run(dir, func(t *testing.T) {
			// With os.Chdir, the test cache would have the time of /dev/shm, which other programs
			// change.
			if err := syscall.Chdir(dir); err != nil {
				t.Fatal(err)
			}
			for _, rate := range []baud{0, 9600} {
				var c config
				if c.baud = rate; c.isPort("") {
					t.Errorf("with --baud=%d an empty name is a port", rate)
				}
			}
		})
	}
}
