package judge

import (
	"path"
	"slices"
	"strings"
)

// mayBeTrampoline reports whether f may be in a signal trampoline, although no file shows it. The
// module of f must have the name of a C library, a dynamic linker or the vDSO, and its file must be
// missing or not proved. f must have no symbol, or the name of a trampoline.
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
