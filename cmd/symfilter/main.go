// Symfilter prints a log with addresses replaced by function, file and line.
//
// It reads logs with backtraces or LLVM symbolizer markup, reports and profiles, from files or
// standard input. It finds debug files by build ID. Standard output gets only the symbolized input.
// Diagnostics are single lines on standard error. "symfilter --help" lists the flags. Each flag is
// also read from the environment: --symbol-path from SYMFILTER_SYMBOL_PATH, with lists separated as
// in PATH.
//
// The exit code is 0 if the log was passed on, even if frames stayed unresolved. 1 means an input
// or output error, and 2 wrong usage. 3 means that, with --strict, something stayed unresolved. 4
// means that a gate failed. After a signal, the code is 128 plus the signal's number, except for
// Ctrl-C while a serial port is read. If the reader closes standard output, the code is 0, without
// an error message. "symfilter run" exits like the program that it has started.
package main

import (
	"os"

	"github.com/symfilter/symfilter/internal/startup"
)

const (
	exitOK     = 0
	exitIO     = 1
	exitUsage  = 2
	exitStrict = 3
	exitGate   = 4   // takes precedence over exitStrict
	exitSignal = 128 // plus the signal's number
)

func main() {
	if err := startup.CheckDescriptors(); err != nil {
		os.Stderr.WriteString("symfilter: " + err.Error() + "\n")
		os.Exit(exitIO)
	}
	os.Exit(run(byName(os.Args[0], os.Args[1:]), os.Stdin, os.Stdout, os.Stderr))
}
