//go:build unix

package buildid

import "syscall"

// openFlags keep an open from waiting for the other end of a FIFO, and a terminal from becoming ours. Files are closed on
// exec anyway.
const openFlags = syscall.O_NONBLOCK | syscall.O_NOCTTY
