package follow

import (
	"time"

	"golang.org/x/sys/unix"
)

// bootTime returns when the machine was started, in Unix seconds, as its clocks say: they answer
// also in a sandbox that hides the boot ID below /proc/sys.
func bootTime() int64 {
	var up unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &up); err != nil {
		return 1
	}
	return time.Now().Add(-time.Duration(up.Nano())).Unix()
}
