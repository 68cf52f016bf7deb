// Package callgrind reads profiles in the format of Callgrind and gives
// stripped code its names back.
//
// A [Reader] turns bytes into records: a header, the cost of a place, a call, a
// jump. It is lenient, as KCachegrind is: besides Callgrind, Cachegrind, Xdebug,
// pprof, gperftools and many others write the format, each its own way.
// [NewMarkup] renders records as symbolizer markup, in the order of the profile.
// [NewReport] sums them: it prints a table of functions, JSON Lines
// (report.schema.json), or the profile again, with names.
//
// Where Callgrind knew no name, it wrote the address at which a function was
// entered, and with --dump-instr=yes the address of every instruction. They are
// those of the object's file, so the build ID of that file and the address are a
// location. Costs are summed by what the locations are, not by what the profile
// calls them: code that a stripped function jumped into is that of another
// function there, as it is in the profile of the unstripped program.
//
// The format is "Callgrind Format Specification", version 1, in Valgrind's
// manual; where it and Callgrind's own files disagree, these win.
package callgrind
