package debuginfod

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/fnv"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// accessed returns the time of a file's last read.
func accessed(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Atim.Unix())
	}
	return info.ModTime()
}

// lockFile waits until no other process holds the lock on k, or until ctx is done. The lock is one
// byte of f at an offset from a hash of k, so one file serves all keys. The system releases the
// lock when f is closed or the process ends. A system error means that the file system has no
// locks.
func lockFile(ctx context.Context, f *os.File, k key) error {
	h := fnv.New64a()
	h.Write(k.id.Bytes())
	h.Write([]byte{byte(k.kind)})
	h.Write([]byte(k.source))
	lock := unix.Flock_t{Type: unix.F_WRLCK, Start: int64(binary.LittleEndian.Uint64(h.Sum(nil)) >> 2), Len: 1}
	for {
		err := unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &lock)
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) && !errors.Is(err, unix.EINTR) {
			return err
		}
		if !pause(ctx, lockPoll) {
			return context.Cause(ctx)
		}
	}
}
