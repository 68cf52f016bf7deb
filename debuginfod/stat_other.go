//go:build !unix

package debuginfod

import "io/fs"

const openFlags = 0

// The checks accept every file on this system: the user's cache directory inherits its access
// control lists from its parent.
func checkOwner(fs.FileInfo) error { return nil }
func checkMode(fs.FileInfo) error  { return nil }
