package demangle

// bounds of each demangled name
const (
	MaxMangled = 4 << 10 // bytes of a mangled name; the demangler's memory grows with them
	MaxShown   = 14      // argument of MaxLength: 2^14 bytes; back references can double a name
)

// Bounded returns show(name). It returns name if name is longer than MaxMangled, or if show fails
// or panics: a panic must not end the program.
func Bounded(name string, show func(name string) (string, bool)) (shown string) {
	if len(name) > MaxMangled {
		return name
	}
	defer func() {
		if recover() != nil {
			shown = name
		}
	}()
	if s, ok := show(name); ok {
		return s
	}
	return name
}

// GNU returns a name as GNU's tools and Valgrind show it, with a blank between closing brackets of
// templates. It returns name itself if name is not mangled, or exceeds the bounds.
func GNU(name string) string {
	return Bounded(name, func(name string) (string, bool) {
		s, err := ToString(name, MaxLength(MaxShown))
		return s, err == nil
	})
}
