//go:build !linux

package sandbox

import (
	"errors"
	"runtime"
)

// Apply does nothing: only Linux has these restrictions.
func Apply(Policy) (s State) {
	s.off("sandbox", errors.New("not on "+runtime.GOOS))
	return s
}
