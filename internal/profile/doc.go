// Package profile reads profiles of other tools with raw addresses, names the addresses, and prints
// the profile.
//
// [Read] recognizes the format by the content: pprof's protocol buffers (plain or compressed by
// gzip), heap and CPU profiles of gperftools (tcmalloc), and heap profiles of jemalloc. An address
// is looked up in the mapped file, which the build ID in the profile identifies. Without a build
// ID, it is the file at the mapped path, whose size must fit the mapping. Locations with names keep
// them.
//
// Files of Valgrind's DHAT and Massif have addresses without a map. [Places] finds the load
// addresses of their object files. The form [Own] prints such a file with names, as Valgrind's
// tools write it for programs with debug information.
//
// Memory for a profile comes from Options.Memory. Numbers in a profile are never trusted: each list
// is bounded by its bytes in the file.
package profile
