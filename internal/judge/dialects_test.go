package judge

import "github.com/symfilter/symfilter/internal/dialect"

var glibc, sanitizer, gdb, coredump = named("glibc"), named("sanitizer"), named("gdb"), named("systemd-coredump")

func named(name string) *dialect.Dialect {
	for _, d := range dialect.All() {
		if d.Name == name {
			return d
		}
	}
	panic("no dialect " + name)
}

func frame(f dialect.Frame) *Frame { return &Frame{Frame: &f} }
