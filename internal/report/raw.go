package report

// A RawFrame is a frame of a stack as a report has it. In the zero value, nothing is known.
type RawFrame struct {
	// Addr is the address in the process: of the instruction if Exact is set, otherwise one byte
	// before the return address of a call.
	Addr  uint64
	Exact bool

	Object     string // path of the object file; empty: unknown
	Func, File string // empty: unknown
	Line       uint64 // 0: unknown
}

// Period returns the length of the shortest sequence that, repeated, makes up n elements. equal
// compares two elements by their indexes. The frames at one address are a function and its inlined
// calls. If they repeat, the function calls itself.
func Period(n int, equal func(i, j int) bool) int {
next:
	for p := 1; p <= n/2; p++ {
		if n%p != 0 {
			continue
		}
		for i := p; i < n; i++ {
			if !equal(i, i-p) {
				continue next
			}
		}
		return p
	}
	return n
}
