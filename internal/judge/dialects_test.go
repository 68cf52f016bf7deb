package judge

import "github.com/symfilter/symfilter/internal/dialect"

// Dialects of the frames in tests.
var glibc, sanitizer, gdb, coredump = named("glibc"), named("sanitizer"), named("gdb"), named("systemd-coredump")

// named returns the dialect of this name.
func named(name string) *dialect.Dialect {
	for _, d := range dialect.All() {
		if d.Name == name {
			return d
		}
	}
	panic("no dialect " + name)
}

// frame returns f, which is not located yet.
func frame(f dialect.Frame) *Frame { return &Frame{Frame: &f} }
