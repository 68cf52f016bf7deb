package symbolize

import "golang.org/x/sys/unix"

// lowerPriority lowers the priority of the calling thread only. To the kernel, PRIO_PROCESS means a
// thread, and 0 the calling thread. The sandbox forbids this for other threads.
func lowerPriority(by int) { unix.Setpriority(unix.PRIO_PROCESS, 0, by) }
