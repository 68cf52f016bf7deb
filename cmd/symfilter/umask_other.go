//go:build !unix

package main

import "os"

func defaultMode() os.FileMode { return 0o666 }
