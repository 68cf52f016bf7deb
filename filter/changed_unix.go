//go:build unix

package filter

import (
	"time"

	"golang.org/x/sys/unix"
)

// changedAt returns the modification time of the file at path, or its inode's change time if that
// is later: unpacking an archive may set an early modification time. It returns zero if there is no
// file.
func changedAt(path string) (at time.Time) {
	var st unix.Stat_t
	if unix.Stat(path, &st) != nil {
		return at
	}
	for _, t := range []unix.Timespec{st.Mtim, st.Ctim} {
		if t := time.Unix(t.Unix()); t.After(at) {
			at = t
		}
	}
	return at
}
