package main

import "testing"

// An empty name, as of a flag that was not given, is no serial port, wherever the program runs: the
// sandbox would open the folder of ports for it.
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
