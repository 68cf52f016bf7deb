//go:build !linux

package follow

// bootTime returns a constant, as if the machine had never been restarted. On this system, a power
// cut cannot be distinguished from the end of the process.
func bootTime() int64 { return 1 }

// bootID returns "": the starts of the machine have no ID here.
func bootID() string { return "" }
