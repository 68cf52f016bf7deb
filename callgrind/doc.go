// Package callgrind reads profiles in the format of Callgrind, and adds the names of stripped
// functions.
//
// The package is lenient, as KCachegrind is. Besides Callgrind, programs such as Cachegrind,
// Xdebug, pprof and gperftools write the format, each in its own way.
//
// [NewMarkup] renders a profile as symbolizer markup, line by line. [NewReport] sums one or several
// inputs ([Report.Begin]). It prints a table of functions, JSON Lines (report.schema.json), stacks,
// or the profile again, with names. [NewComparison] prints how the costs of functions changed
// between two profiles. A [Limit] decides whether a cost, or its change, is too large.
//
// If Callgrind knew no name, it wrote the address at which a function was entered. With
// --dump-instr=yes it also wrote the address of every instruction. The addresses refer to the
// object file, so the file's build ID and an address form a location. Costs are summed by the
// functions at the locations, not by the names in the profile. If a stripped function jumped into
// the code of another, that other function gets the cost of the code. The profile of the unstripped
// program shows the same.
//
// The format is "Callgrind Format Specification", version 1, in Valgrind's manual. If it and
// Callgrind's own files disagree, the package follows the files.
package callgrind
