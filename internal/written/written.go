// Package written examines output: whether its reader has read it, whether it ends within a line,
// and whether a failed write may succeed later.
package written

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"syscall"
)

// IsFull reports whether a write that failed with err may succeed once the disk has space.
func IsFull(err error) bool { return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) }

// IsTorn reports whether f is a regular file whose last line is unfinished, since a process was
// killed while it wrote. f need not be open for reading.
func IsTorn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	var last [1]byte
	if _, err := f.ReadAt(last[:], info.Size()-1); err == nil {
		return last[0] != '\n'
	}
	var again *os.File
	err = errors.ErrUnsupported
	control(f, func(fd uintptr) { again, err = os.Open(fmt.Sprintf("/dev/fd/%d", fd)) })
	if err != nil {
		return false
	}
	defer again.Close()
	_, err = again.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] != '\n'
}

// IsPipe reports whether f is a pipe or a socket.
func IsPipe(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0
}

// Taken returns a function that counts the bytes that readers have taken from the output. It
// subtracts unread's result from total's. total returns the number of bytes written so far, or
// fewer. unread returns the number of unread bytes, or false if that is unknown. The count never
// decreases, and never exceeds the bytes taken. The function is safe for concurrent use.
func Taken(total func() int64, unread func() (n int64, ok bool)) func() int64 {
	var mu sync.Mutex
	taken := int64(0)
	return func() int64 {
		mu.Lock()
		defer mu.Unlock()
		written := total() // before unread is counted
		if n, ok := unread(); ok {
			taken = max(taken, written-n)
		}
		return taken
	}
}

func control(f syscall.Conn, use func(fd uintptr)) {
	if conn, err := f.SyscallConn(); err == nil {
		conn.Control(use)
	}
}
