// Package profile reads profiles that other tools have written with raw addresses, names the
// addresses, and prints the profile.
//
// [Read] recognizes the format by the content: pprof's protocol buffers, plain or compressed by
// gzip; heap and CPU profiles of gperftools (tcmalloc); heap profiles of jemalloc. An address is
// looked up in the file that was mapped there: by the build ID of the profile, or, if the profile
// has none, by the file at the mapped path, whose size must fit the mapping. Locations that have
// names already keep them.
//
// Files of Valgrind's DHAT and Massif have addresses without a map. [Places] finds out where their
// object files were loaded, and [Own] prints them again as these tools do for programs with debug
// information.
//
// Memory for a profile comes from Options.Memory. Numbers of a profile are never trusted: each list
// is bounded by the bytes that it takes in the file.
package profile
