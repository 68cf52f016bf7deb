//go:build unix

package startup

import (
	"fmt"
	"syscall"
)

// neededDescriptors must be free at the start: one for a log, and two for the event queue of Go's
// runtime. Without them, the runtime ends the program with a dump of its stacks.
const neededDescriptors = 3

// CheckDescriptors returns an error if fewer files may be opened than every run needs.
func CheckDescriptors() error {
	var open []int
	defer func() {
		for _, fd := range open {
			syscall.Close(fd)
		}
	}()
	for range neededDescriptors {
		fd, err := syscall.Dup(0)
		if err != nil {
			return fmt.Errorf("%v: only %d more may be opened, and %d are needed; see ulimit -n", err, len(open), neededDescriptors)
		}
		open = append(open, fd)
	}
	return nil
}
