//go:build !linux

package main

import "os"

// enlargePipe does nothing: the size of a pipe cannot be set here.
func enlargePipe(*os.File) {}

// unread returns nil: how much of a pipe was read is not known here.
func unread(*os.File) func() (int64, bool) { return nil }

// awaitClosed does nothing: it is noticed at the next line.
func awaitClosed(*os.File, func()) {}
