// Package profile reads profiles that other tools have written with raw addresses, names the
// addresses, and prints the profile.
//
// [Read] recognizes the format by the content. It knows pprof's protocol buffers (plain or
// compressed by gzip), heap and CPU profiles of gperftools (tcmalloc), and heap profiles of
// jemalloc. An address is looked up in the file that was mapped there, which is found by the build
// ID in the profile. Without a build ID, it is the file at the mapped path, whose size must fit the
// mapping. Locations that have names already keep them.
//
// Files of Valgrind's DHAT and Massif have addresses without a map. [Places] finds where their
// object files were loaded. [Own] prints them again as these tools do for programs with debug
// information.
//
// Memory for a profile comes from Options.Memory. Numbers of a profile are never trusted: each list
// is bounded by the bytes that it takes in the file.
package profile
