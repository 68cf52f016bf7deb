//go:build unix

package daemon

import (
	"context"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// bytes that a ready pipe accepts without waiting (PIPE_BUF)
	pipeSure = 4096
	// interval between checks whether the context of a write is done
	readyPoll = 50 * time.Millisecond
)

// writeSome writes a part of p to f. While it waits for a reader, it does not block in the system,
// and can stop when ctx is done. Another writer to the same pipe may still make it block.
func writeSome(ctx context.Context, f *os.File, regular bool, p []byte) (n int, err error) {
	conn, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	do := func(fd uintptr) {
		if regular {
			n, err = unix.Write(int(fd), p)
		} else {
			n, err = writeReady(ctx, int(fd), p)
		}
		n = max(n, 0)
	}
	if failed := conn.Control(do); failed != nil {
		return 0, failed
	}
	switch {
	case err == unix.EINTR || err == unix.EAGAIN:
		return n, nil
	case err != nil:
		return n, &os.PathError{Op: "write", Path: f.Name(), Err: err}
	case n == 0:
		return 0, io.ErrShortWrite
	}
	return n, nil
}

// writeReady writes to a pipe, a socket or a terminal when it is ready.
func writeReady(ctx context.Context, fd int, p []byte) (int, error) {
	for {
		if ctx.Err() != nil {
			return 0, errReplaced
		}
		events := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		switch n, err := unix.Poll(events, int(readyPoll/time.Millisecond)); {
		case err == unix.EINTR || err == unix.EAGAIN:
		case err != nil:
			return 0, err
		case n > 0:
			return unix.Write(fd, p[:min(len(p), pipeSure)])
		}
	}
}

// writable returns an error if no file can be made in dir.
func writable(dir string) error { return unix.Access(dir, unix.W_OK|unix.X_OK) }
