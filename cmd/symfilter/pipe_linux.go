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

// awaitClosed starts a goroutine that calls closed when nobody reads the pipe or
// socket that f is any more.
func awaitClosed(f *os.File, closed func()) {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return
	}
	go control(f, func(fd uintptr) {
		events := []unix.PollFd{{Fd: int32(fd)}} // errors and hang-ups come unasked
		for {
			switch n, err := unix.Poll(events, -1); {
			case err == unix.EINTR || err == unix.EAGAIN:
			case err != nil || n == 0:
				return
			default:
				closed()
				return
			}
		}
	})
}
