package symbolize

import "golang.org/x/sys/unix"

// lowerPriority lowers the priority of the calling thread only. PRIO_PROCESS means a thread to the
// kernel, and 0 the calling one; the sandbox allows no other.
func lowerPriority(by int) { unix.Setpriority(unix.PRIO_PROCESS, 0, by) }
