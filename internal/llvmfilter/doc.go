// Package llvmfilter is llvm-symbolizer --filter-markup again, faults
// included: the same bytes on both outputs as those of LLVM 19.
//
// It is for those who have LLVM's filter in a pipeline, and a test or a person
// behind it that knows its output by heart. What LLVM's filter gets wrong
// (text that it deletes, frames that it loses) is wrong here too; package
// filter is the one that gets them right. The two share the symbolizer and
// nothing else: a rule that is mended there must not change anything here.
//
// # A line
//
// A line is split into elements, "{{{tag:field:field}}}", the ten SGR
// sequences of the specification, and text. The first module, mmap or reset on
// a line makes it a contextual line: what stands before that element is
// printed or dropped with it, what follows is dropped. All other lines are
// ordinary: each part is printed, replaced or deleted by itself.
//
// # Differences
//
// Where LLVM's filter has no bound, or no defined behaviour, this one has the
// limits below. A line longer than maxLine is passed on as it is. Modules and
// maps beyond their limits are errors, reported like a duplicate ID. Module ID
// 2^64-1 is LLVM's own mark of an unused slot: it can be defined only before
// any other, as there, but nothing that LLVM reads from uninitialised memory
// is imitated: a map of that module where it was not defined is one of an
// unknown module, here.
//
// Debug files are the symbolizer's affair, and some of its rules are not
// LLVM's. A file of another build, which LLVM would use without looking, is
// not found. What is wrong with a damaged ELF file is told in other words. The
// demanglers differ in some names of C++, half a percent of those of a large
// library, and D's and Microsoft's are shown as they are. Code that the linker
// threw away, of which debug information says that it is at address 0, is not
// found there. Functions of 64-bit PowerPC in big-endian order have the
// addresses of their descriptors. SPEC.md has the whole list, and the tests.
package llvmfilter

// Limits, one a line, with unit and reason.
const (
	maxLine    = 64 << 20  // bytes of a line, without its end; LLVM takes 1.5 times its length in memory, whatever it is
	maxEcho    = 64 << 10  // bytes of diagnostics about one line, beside those of maxRepeat
	maxRepeat  = 16        // times that diagnostics repeat a line: each error does, so their sum would be its length squared
	maxModules = 65536     // modules known at once: those of a process with every library of a large distribution
	maxMaps    = 262144    // maps known at once: four for each module; and maps in one module line, where one of size 0 repeats without being new
	maxContext = 64 << 20  // bytes of module names known at once
	maxBroken  = 4096      // unusable debug files remembered as reported
	maxKept    = 8 << 20   // bytes of frames kept by address: those of a few hundred stacks
	maxIDBytes = 64        // bytes of a build ID that can be looked for
	readBlock  = 256 << 10 // bytes read at a time; larger blocks leave the processor's caches
	chunk      = 64 << 10  // bytes printed before they are written
)
