package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is what a pipe is enlarged to: it doubles the throughput over the
// kernel's 64 KiB. More needs privileges.
const pipeSize = 1 << 20 // bytes

// enlargePipe enlarges the pipe that f is; other files are left alone. The
// user's limit on pipes may refuse it, which costs only speed.
func enlargePipe(f *os.File) {
	control(f, func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
}
