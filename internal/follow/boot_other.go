//go:build !linux

package follow

// bootTime returns a constant: this system does not report when the machine was started.
func bootTime() int64 { return 1 }

// bootID returns "": this system has no ID for a start of the machine.
func bootID() string { return "" }
