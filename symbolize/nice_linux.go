package symbolize

import "golang.org/x/sys/unix"

// lowerPriority makes the present thread, alone, less important. The scheduler
// knows threads by the numbers that processes have elsewhere.
func lowerPriority(by int) { unix.Setpriority(unix.PRIO_PROCESS, unix.Gettid(), by) }
