package main

import "testing"

// The name of a flag that was not given is empty. If this were a port, the sandbox would allow
// access to devices.
func TestEmptyNamesAreNoPorts(t *testing.T) {
	for _, dir := range []string{t.TempDir(), "/dev/shm", "/"} {
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
