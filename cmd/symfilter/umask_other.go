//go:build !unix

package main

import "os"

// defaultMode returns the mode of files that this process makes.
func defaultMode() os.FileMode { return 0o666 }
