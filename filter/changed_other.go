//go:build !unix

package filter

import (
	"os"
	"time"
)

// changedAt returns the time of the last change of the file at path, or zero if there is no file.
func changedAt(path string) (at time.Time) {
	if info, err := os.Stat(path); err == nil {
		at = info.ModTime()
	}
	return at
}
