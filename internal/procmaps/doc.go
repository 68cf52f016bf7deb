// Package procmaps remembers which files the processes of a program have mapped, and where.
//
// A process that crashes is gone soon after it has printed its backtrace. So the maps of the
// program and its descendants are read while these run: at the start, when output is read, and at
// intervals. No process is stopped, traced or changed.
//
// A mapping answers for an address only if no other one with the address differs from it. Mappings
// that a process has given up in the last seconds count as well, and the last ones of processes
// that have ended, since output may come late. So does memory with code but without a file, about
// which nothing is known. A process that was never seen may have other code at an address that the
// kernel has not chosen at random: such an answer is marked as predictable.
//
// One goroutine looks at the processes, and the result of a look replaces that of the last one.
// Output waits for a look only for a while, since a file of a process may be on a disk that does
// not answer.
package procmaps
