package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Apply gives up the rights that p does not keep, in all threads and for good. A part that the
// kernel, the architecture or the container lacks is left out, and the State has the reason.
// The other parts are in force, unless they need that part. Call Apply once, before the process
// reads anything of unknown origin.
func Apply(p Policy) (s State) {
	if err := filterCalls(p); err != nil {
		s.off("seccomp", err)
		if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
			s.off("restrictions", inAllThreads(errno, "seccomp")) // Landlock needs no_new_privs
			return s
		}
	} else {
		s.Seccomp = true
	}
	s.NoNewPrivs = true
	if p.OtherProcesses {
		s.off("Landlock", errOtherProcesses)
		return s
	}
	abi, err := restrictFiles(p)
	if err != nil {
		s.off("Landlock", err)
	}
	s.Landlock = abi
	return s
}
