package sandbox

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Apply gives up, in all threads and for good, what p does not keep. A part that
// the kernel, the architecture or the surrounding container does not offer is
// left out: the others are in force nevertheless, and the State has the reason.
// It is to be called once, before anything of unknown origin is read.
func Apply(p Policy) (s State) {
	if err := filterCalls(p.Network); err != nil {
		s.off("seccomp", err)
		if _, _, errno := syscall.AllThreadsSyscall6(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0, 0); errno != 0 {
			s.off("restrictions", inAllThreads(errno)) // Landlock needs this one
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
