package dialect

import (
	"path"
	"slices"
	"strings"
)

// mayBeTrampoline reports whether f may be the code to which a signal handler returns: it is in a file
// that is not here, and that may have such code.
func (c *check) mayBeTrampoline(f *Frame) bool {
	if c.of != nil && c.of.image.Err == nil || f.Symbol.Name != "" && !slices.Contains(trampolineNames, f.Symbol.Name) {
		return false
	}
	name := path.Base(f.Module)
	for _, libc := range []string{"libc.", "libc-", "libpthread", "ld-musl", "linux-vdso", "[vdso]"} {
		if strings.HasPrefix(name, libc) {
			return true
		}
	}
	return false
}
