package symbolize

import "golang.org/x/sys/unix"

// lowerPriority makes the calling thread, and no other, less important. To the kernel a "process" is
// a thread here, and 0 the calling one: the sandbox allows no other.
func lowerPriority(by int) { unix.Setpriority(unix.PRIO_PROCESS, 0, by) }
