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

// unread returns a function that returns how many bytes written to f its reader
// has not read yet; nil if that cannot be known, as of a file. It reports false
// when the reader of a socket is gone: what it had not read is gone too, and
// not counted any more. For a network connection a byte counts as read when the
// other machine has it.
func unread(f *os.File) func() (n int64, ok bool) {
	info, err := f.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return nil
	}
	socket := info.Mode()&os.ModeSocket != 0
	request := uint(unix.TIOCINQ) // FIONREAD
	if socket {
		request = unix.SIOCOUTQ
	}
	count := func() (n int64, ok bool) {
		control(f, func(fd uintptr) {
			i, err := unix.IoctlGetInt(int(fd), request)
			n, ok = int64(i), err == nil
			if events := []unix.PollFd{{Fd: int32(fd)}}; ok && socket { // after it was counted: Linux tells the end before it drops what was not read
				ready, err := unix.Poll(events, 0)
				ok = err == nil && ready == 0
			}
		})
		return n, ok
	}
	if _, ok := count(); !ok {
		return nil
	}
	return count
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
