//go:build unix

package buildid

import "syscall"

// openFlags are for files that may be FIFOs or terminals: an open must not wait for the other end,
// nor take a controlling terminal. The os package sets O_CLOEXEC.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
