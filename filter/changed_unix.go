//go:build unix

package filter

import (
	"time"

	"golang.org/x/sys/unix"
)

// changedAt returns the time of the last change of the file at path, of its bytes or of its inode:
// packages and archives set the time of the bytes to an earlier one. It returns zero if there is no
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
