package judge

import (
	"path"
	"slices"
	"strings"
)

// mayBeTrampoline reports whether f may be in a signal trampoline: by its name, its file may have
// one, and the file is missing or not proved.
func (c *check) mayBeTrampoline(f *Frame) bool {
	if c.of != nil && c.of.image.Err == nil && (c.verified == BySymbol || c.of.identifies(f) || c.of.all.proves(c.of.image)) || f.Symbol.Name != "" && !slices.Contains(trampolineNames, f.Symbol.Name) {
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
