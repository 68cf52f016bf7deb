package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// pipeSize is the size of enlarged pipes: it doubles the throughput of the kernel's default of 64
// KiB. A larger size needs privileges.
const pipeSize = 1 << 20 // bytes

// enlargePipe enlarges f if it is a pipe. The user's limit on pipes may refuse it, which costs only
// speed.
func enlargePipe(f *os.File) {
	control(f, func(fd uintptr) { unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeSize) })
}

// unread returns a function that returns how many bytes written to f its reader has not read yet;
// nil if that cannot be known, as for a file. The function reports false once the reader of a
// socket is gone: the unread bytes are gone too, and no longer counted. On a network connection a
// byte counts as read once the other machine has it.
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
			if events := []unix.PollFd{{Fd: int32(fd)}}; ok && socket { // after the count: Linux reports the end before it drops the unread bytes
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

// awaitClosed starts a goroutine that calls closed once the pipe or socket f has no reader.
func awaitClosed(f *os.File, closed func()) {
	if !isPipe(f) {
		return
	}
	go control(f, func(fd uintptr) {
		events := []unix.PollFd{{Fd: int32(fd)}} // errors and hang-ups are always reported
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
