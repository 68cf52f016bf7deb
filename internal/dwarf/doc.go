// Package dwarf finds the functions, files and lines of an address of code, and the variable and
// member at an address of data. It reads DWARF debug information in place.
//
// It reads versions 2 to 5, in 32- and 64-bit form and both byte orders, from the bytes of an
// [object.File], usually the mapped file. It parses parts only when needed: a first lookup scans
// .debug_aranges, then parses the unit that covers the address. Parsed units are kept, in slices
// without pointers, until [Data.Shrink] drops them.
//
// # Rules
//
// The answers agree with LLVM 19's llvm-symbolizer. If several descriptions cover an address, the
// package chooses as LLVM does: see the comments of sweep (units), pick (functions and inlined
// calls), gather (functions that overlap, and cold parts) and beginLine (rows). Code that the
// linker discarded is ignored: its ranges start at the highest or second-highest address, or at 0
// if no code is loaded there.
//
// # Variables
//
// No table lists the addresses of variables, and a big file has too many entries to read them all
// for one address. But nearly all compilers write such an address either as DW_OP_addr and its
// bytes or as an index into .debug_addr. So the first lookup of a variable scans the bytes of the
// whole .debug_info, at 4 GB/s. It keeps, for each address, the units that may have a variable
// there. Each lookup reads types only as far as needed: it walks over their entries, and never
// builds a graph.
//
// # Damaged and hostile files
//
// No input makes this package panic, loop, or allocate more than a small multiple of its size.
// Offsets are checked against their section, counts against the remaining bytes, chains and depths
// against a constant of limits.go. All work of one lookup has a budget. Damage in one unit leaves
// the others usable. A mapped file that shrinks still faults: callers read within [object.Guard].
//
// # Left out
//
// Variables are not found if .debug_info is larger than 1 GiB, or compressed and larger than 64
// MiB. Callers then have only the symbol's name. Members are left out in types that only another
// file describes, such as Clang's std::string, and in virtual bases. They are also left out in Rust
// enums if several variants have members at the byte.
//
// If the .dwo file or package of a split unit is missing, file and line are known, but no function,
// unless the compiler left inlined calls in the skeleton. Names in a missing supplementary file are
// unknown. .debug_names and .gdb_index are not read. .debug_names has no addresses. .gdb_index
// would save one scan of the root entries: 35 ms for 30,000 units and 600,000 ranges. But it
// chooses differently from LLVM among overlapping units.
package dwarf
