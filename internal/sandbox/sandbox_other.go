//go:build !linux

package sandbox

import (
	"errors"
	"runtime"
)

// Apply does nothing: the restrictions are those of Linux.
func Apply(Policy) (s State) {
	s.off("sandbox", errors.New("not on "+runtime.GOOS))
	return s
}
