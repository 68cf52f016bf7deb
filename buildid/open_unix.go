//go:build unix

package buildid

import "syscall"

// openFlags are for files that may be FIFOs or terminals: do not wait for the other end, and do not
// take a controlling terminal. Go closes files on exec without a flag.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
