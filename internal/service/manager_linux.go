package service

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time of CLOCK_MONOTONIC, by which systemd orders reloads and its own
// signals.
func monotonic() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		return 0 // no kernel lacks this clock
	}
	return time.Duration(now.Nano())
}

// isJournal reports whether f is the stream that JOURNAL_STREAM names as DEVICE:INODE. The variable
// alone proves nothing: programs inherit it even if their output was redirected.
func isJournal(stream string, f *os.File) bool {
	info, err := f.Stat()
	if err != nil {
		return false
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && stream == fmt.Sprintf("%d:%d", st.Dev, st.Ino)
}
