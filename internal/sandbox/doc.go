// Package sandbox gives up the rights that the process will not need.
//
// It is a second wall: the readers of logs and debug files are bounded and
// memory safe, and if one of them could be taken over nevertheless, the process
// starts no program, opens no connection that the operator did not ask for, and
// changes no file outside of a few folders.
package sandbox

import (
	"fmt"
	"strings"
)

// A Policy lists what the process keeps. The zero value reads files and writes
// to what is open.
type Policy struct {
	// Write are folders in which files and folders are made, written, renamed and
	// removed, at any depth. Those that do not exist are left out: a folder that
	// is made later is not writable.
	Write []string

	// Network keeps connections over TCP and UDP. Nothing listens in any case.
	Network bool

	// OtherProcesses keeps what the kernel shows of other processes, such as
	// /proc/1234/root. It costs all of Landlock, which hides them from a process
	// that it restricts.
	OtherProcesses bool
}

// A State is what [Apply] achieved. The zero value is a process with all of its
// rights.
type State struct {
	NoNewPrivs bool     // setuid programs and file capabilities have no effect any more
	Landlock   int      // version of the kernel's interface; 0 if Landlock is off
	Seccomp    bool     // system calls are filtered
	Missing    []string // for each part that is off, which and why
}

// String describes s in one line: "no new privileges, Landlock ABI 7, seccomp".
func (s State) String() string {
	var parts []string
	if s.NoNewPrivs {
		parts = append(parts, "no new privileges")
	}
	if s.Landlock > 0 {
		parts = append(parts, fmt.Sprintf("Landlock ABI %d", s.Landlock))
	}
	if s.Seccomp {
		parts = append(parts, "seccomp")
	}
	if parts == nil {
		parts = append(parts, "none")
	}
	return strings.Join(append([]string{strings.Join(parts, ", ")}, s.Missing...), "; ")
}

// off records why a part is off.
func (s *State) off(part string, err error) {
	s.Missing = append(s.Missing, fmt.Sprintf("no %s: %v", part, err))
}
