//go:build unix

package filter

import (
	"time"

	"golang.org/x/sys/unix"
)

// changedAt returns the modification time of the file at path, or the change time of its inode if
// that is later. Unpacking a package or an archive may set an earlier modification time. It returns
// zero if there is no file.
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
