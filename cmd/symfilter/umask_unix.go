//go:build unix

package main

import (
	"os"
	"syscall"
)

// defaultMode returns the mode of new files: 0666 without the bits of the umask. A file that
// another goroutine makes during the call is accessible only to the user.
func defaultMode() os.FileMode {
	mask := syscall.Umask(0o077)
	syscall.Umask(mask)
	return 0o666 &^ os.FileMode(mask)
}
