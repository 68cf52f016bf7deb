package written

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// Unread returns a function that counts the bytes written to f that its reader has not read. It
// returns nil if f is neither a pipe nor a socket, or if the system does not count them. The
// function returns false once the reader of a socket is gone, since the system then drops the
// unread bytes. On a network connection, a byte counts as read once the other machine has received
// it.
func Unread(f *os.File) func() (n int64, ok bool) {
	if !IsPipe(f) {
		return nil
	}
	info, err := f.Stat()
	return unread(f, err == nil && info.Mode()&os.ModeSocket != 0)
}

// UnreadOf returns what Unread returns, but for a connection of package net.
func UnreadOf(conn syscall.Conn) func() (n int64, ok bool) { return unread(conn, true) }

func unread(f syscall.Conn, socket bool) func() (n int64, ok bool) {
	request := uint(unix.TIOCINQ) // FIONREAD
	if socket {
		request = unix.SIOCOUTQ
	}
	count := func() (n int64, ok bool) {
		control(f, func(fd uintptr) {
			i, err := unix.IoctlGetInt(int(fd), request)
			n, ok = int64(i), err == nil
			if ok && socket { // after the count: Linux reports the end before it drops bytes
				ok = !isBroken(fd)
			}
		})
		return n, ok
	}
	if _, ok := count(); !ok {
		return nil
	}
	return count
}

// isBroken reports whether the other end of a socket is gone. It returns true if this is unknown.
func isBroken(fd uintptr) bool {
	events := []unix.PollFd{{Fd: int32(fd)}} // errors and hang-ups are always reported
	ready, err := unix.Poll(events, 0)
	return err != nil || ready != 0
}

// AwaitClosed starts a goroutine that calls closed once the pipe or socket f has no reader.
func AwaitClosed(f *os.File, closed func()) {
	if !IsPipe(f) {
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

// AwaitBroken waits until the other end of a connection is gone, or the connection is closed. A
// peer that has only ended its own sending is not gone.
func AwaitBroken(conn syscall.Conn) {
	if raw, err := conn.SyscallConn(); err == nil {
		raw.Read(isBroken)
	}
}
