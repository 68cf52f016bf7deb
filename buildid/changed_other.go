//go:build !unix

package buildid

import (
	"os"
	"time"
)

// ChangedAt returns the time of the last change of the file at path. It returns zero if there is no
// file.
func ChangedAt(path string) (at time.Time) {
	if info, err := os.Stat(path); err == nil {
		at = info.ModTime()
	}
	return at
}
