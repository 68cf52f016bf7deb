//go:build !linux

package follow

// bootTime returns a constant: this system cannot tell a power cut from the end of the process.
func bootTime() int64 { return 1 }

// bootID returns "", since a start of the machine has no ID here.
func bootID() string { return "" }
