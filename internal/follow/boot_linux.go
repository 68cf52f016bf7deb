package follow

import (
	"bytes"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/symfilter/symfilter/internal/lineage"
)

// bootTime returns the start of the machine in Unix seconds, or 1 if the clock cannot be read.
func bootTime() int64 {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return 1
	}
	return time.Now().Add(-time.Duration(up.Nano())).Unix()
}

// bootID returns a hash of the kernel's ID of this start of the machine. It returns "" if the ID
// cannot be read, as in a sandbox that hides /proc/sys.
func bootID() string {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil || len(bytes.TrimSpace(id)) != 36 {
		return ""
	}
	return lineage.Hash(append([]byte("symfilter "), id...))
}
