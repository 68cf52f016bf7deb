// Package sandbox gives up the rights that the process will not need.
//
// It is a second line of defence. The readers of logs and debug files are bounded and memory safe.
// If one is taken over nevertheless, the process still cannot start a program, or change a file
// outside of a few folders. It can open connections only if the operator named a peer.
package sandbox

import (
	"fmt"
	"strings"
)

// A Policy lists the rights that the process keeps. The zero value allows reading files, and
// writing to open files.
type Policy struct {
	// Write lists folders in which the process may create, write, rename and remove files and
	// folders, at any depth. It also lists writable files, such as devices. A missing folder is
	// left out, and remains unwritable if it is created later.
	Write []string

	// Devices lists folders with devices, such as serial ports, that the process reads and sets up.
	// In a folder of Write, the process may not set up devices.
	Devices []string

	// Network keeps connections to other programs over TCP and UDP.
	Network bool

	// Local keeps the right to connect to Unix sockets.
	Local bool

	// Listen keeps the right to bind and listen on TCP and UDP ports. Sockets lists folders in
	// which the process may create and remove sockets, and listen on these sockets. Each of the two
	// also keeps the right to accept connections.
	Listen  bool
	Sockets []string

	// Accept keeps accepting connections on sockets that are already open.
	Accept bool

	// OtherProcesses keeps access to the files of other processes, such as /proc/1234/root. Apply
	// then does not use Landlock, which would hide these files.
	OtherProcesses bool

	// Child, if not 0, is the ID of a process that may be signalled. Any process may then get
	// SIGWINCH, which ends no process: processes that Child started share its terminal.
	Child int
}

// A State reports the restrictions in force. The zero value is a process with all of its rights.
type State struct {
	NoNewPrivs bool     // setuid programs and file capabilities have no effect
	Landlock   int      // version of the kernel's interface; 0 if Landlock is off
	Seccomp    bool     // system calls are filtered
	Missing    []string // a reason for each part that is off
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
