package main

import (
	"os"
	"testing"
)

// The empty name must not be a serial port. A flag that was not given has the empty name, and for a
// port the sandbox allows access to devices.
func TestEmptyNamesAreNoPorts(t *testing.T) {
	// The test cache has the time of each working folder that still exists when the tests end.
	// Programs change the time of /dev/shm.
	device, err := os.MkdirTemp("/dev/shm", "")
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(device)
	for _, dir := range []string{t.TempDir(), device, "/"} {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(dir)
			for _, rate := range []baud{0, 9600} {
				var c config
				if c.baud = rate; c.isPort("") {
					t.Errorf("with --baud=%d an empty name is a port", rate)
				}
			}
		})
	}
}
