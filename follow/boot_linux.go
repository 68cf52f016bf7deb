package follow

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns the time of the machine's start, in Unix seconds, or 1 if the clock cannot be
// read. It uses clocks, which are readable even in a sandbox that hides the boot ID below
// /proc/sys.
func bootTime() int64 {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return 1
	}
	return time.Now().Add(-time.Duration(up.Nano())).Unix()
}
