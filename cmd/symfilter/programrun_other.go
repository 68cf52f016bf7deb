//go:build !linux

package main

import (
	"errors"
	"runtime"
)

func startProgram(*config, []string, standard) (int, error) {
	return exitUsage, usageError{errors.New("run needs Linux, whose /proc has the maps of processes; this is " + runtime.GOOS + ": write PROGRAM 2>&1 | symfilter")}
}
