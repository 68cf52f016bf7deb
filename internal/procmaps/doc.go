// Package procmaps remembers which files the processes of a program have mapped, and where.
//
// A process that crashes is gone soon after it has printed its backtrace, so its maps are read while
// it runs: when it starts, when output of it is read, and now and then in between. They are those of
// the program and its descendants. No process is stopped, traced or changed.
//
// An address is answered only if all mappings that it may be in agree: those of now, those that a
// process has given up in the last seconds, and those of processes that have ended, whose output may
// come late. Memory with code but without a file counts, too: nothing is known about it. An address
// that the kernel has not chosen at random may also be that of a process that was never seen: such
// an answer is marked as predictable.
//
// One goroutine looks at the processes, and what it has seen replaces what was known. Output waits
// for it only for a while, since a file of a process may be on a disk that does not answer.
package procmaps
