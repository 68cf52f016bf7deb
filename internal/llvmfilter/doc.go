// Package llvmfilter reproduces llvm-symbolizer --filter-markup, faults included. Except for the
// differences below, its standard output and standard error have the same bytes as LLVM 19's.
//
// It replaces LLVM's filter in a pipeline whose tests or users depend on its exact output. Faults
// of LLVM's filter (deleted text, lost frames) are reproduced; package filter does not have them.
// The two packages share only the symbolizer and internal/lines: a correction in package filter
// must not change the output of this package.
//
// # A line
//
// A line is split into elements, "{{{tag:field:field}}}", the ten SGR sequences of the
// specification, and text. The first module, mmap or reset on a line makes the line contextual. The
// text before that element is printed or dropped with it. The rest of the line is dropped. In all
// other lines each part is printed, replaced or deleted by itself.
//
// # Differences
//
// If LLVM's filter has no bound, or no defined behaviour, the limits below apply. A line longer
// than maxLine is printed unchanged. Modules and maps beyond their limits are errors, reported like
// a duplicate ID. LLVM marks unused slots with the module ID 2^64-1. As in LLVM, that ID can be
// defined only before all others. Reads of uninitialised memory are not imitated: a map of that
// module, if it is not defined, belongs to an unknown module.
//
// The symbolizer finds and reads debug files, and some of its rules differ from LLVM's. It does not
// use a file of another build, which LLVM uses without a check. It describes damaged ELF files in
// other words. The demanglers differ in half a percent of the C++ names of a large library; names
// of D and of Microsoft's compilers are shown mangled. Code that the linker removed, which debug
// information places at address 0, is not found there. Functions of 64-bit big-endian PowerPC have
// the addresses of their descriptors. docs/formats/llvm.md has the whole list, with the tests.
package llvmfilter

// Limits, with units and reasons.
const (
	// bytes of a line without its line end; LLVM has no limit, and takes 1.5 times as much memory
	maxLine = 64 << 20
	// bytes of diagnostics about one line, besides its repetitions: see maxRepeat
	maxEcho = 64 << 10
	// repetitions of a line in its diagnostics: with one for each error, their size would grow
	// with the square of the line's length
	maxRepeat = 16
	// modules at a time, enough for a process with every library of a large distribution
	maxModules = 65536
	// maps at a time, four for each module; also the maximum in a module line, which may repeat
	// maps of size 0
	maxMaps    = 262144
	maxContext = 64 << 20 // bytes of module names at a time
	maxBroken  = 4096     // unusable debug files remembered as reported
	maxKept    = 8 << 20  // bytes of frames kept by address: the frames of a few hundred stacks
	maxIDBytes = 64       // bytes of a build ID that can be searched for
	// bytes read at a time; larger blocks do not fit in the processor's caches
	readBlock = 256 << 10
	chunk     = 64 << 10 // bytes of output collected before a write
)
