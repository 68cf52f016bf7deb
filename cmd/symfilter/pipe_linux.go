package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is the size of enlarged pipes. It doubles the throughput of the kernel's default, 64
// KiB. A larger size needs privileges.
const pipeSize = 1 << 20 // bytes

// enlargePipe enlarges f if it is a pipe. The user's limit on pipes may forbid this, which costs
// only speed.
func enlargePipe(f *os.File) {
	control(f, func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
}
