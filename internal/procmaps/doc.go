// Package procmaps remembers which files the processes of a program have mapped, and where.
//
// A process that crashes is gone soon after its backtrace. So the maps of the program and its
// descendants are read while they run: at the start, when output is read, and at intervals. No
// process is stopped, traced or changed.
//
// A mapping is used for an address only if all mappings with the address agree. Since output may
// come late, this includes mappings given up in the last seconds, and the last mappings of ended
// processes. It also includes memory with code but without a file, which agrees with nothing. A
// process that was never seen may have other code at an address that the kernel did not choose at
// random. A mapping at such an address is marked as predictable.
//
// A look reads the maps of all processes. Only one look runs at a time, and its result replaces the
// result of the last look. Output waits only briefly for a look, since a mapped file may be on a
// disk that does not answer.
package procmaps
