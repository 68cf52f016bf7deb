// Package dwarf answers two questions from DWARF debug information read in place: the functions,
// files and lines of an address of code, and the variable and member at an address of data.
//
// It reads versions 2 to 5, in 32- and 64-bit form and both byte orders, straight from the bytes of
// an [object.File], which usually are the mapped file. Parts are parsed only when needed: a first
// lookup scans .debug_aranges, then parses the unit that covers the address. Parsed units are kept,
// in slices without pointers, until [Data.Shrink] drops them.
//
// # Rules
//
// The answers agree with LLVM 19's llvm-symbolizer. If several descriptions cover an address, the
// package chooses as LLVM does: see the comments of sweep (units), pick (functions and inlined
// calls), gather (functions that overlap, and cold parts) and beginLine (rows). Ranges of code that
// the linker discarded, which start at one of the two highest addresses, or at 0 if no code is
// loaded there, are ignored.
//
// # Variables
//
// No table lists the addresses of variables, and a big file has too many entries to read them all
// for one address. But nearly all compilers write such an address either as DW_OP_addr and its
// bytes or as an index into .debug_addr. So the first question scans the bytes of the whole
// .debug_info, at 4 GB/s, and keeps, for each address, the units that may have a variable there.
// Types are read for each question, as far as needed: their entries are walked, never turned into a
// graph.
//
// # Damaged and hostile files
//
// No input makes this package panic, loop, or allocate more than a small multiple of its size.
// Every offset is checked against the section it points into, every count against the bytes that
// remain, every chain and depth against a constant of limits.go, and all the work of one lookup
// against a budget. Damage in one unit leaves the others usable. (A mapped file that shrinks still
// faults: callers read within [object.Guard].)
//
// # Left out
//
// Variables are not found if .debug_info is larger than 1 GiB, or compressed and larger than 64
// MiB: then the answer is the symbol's name. The member is left out for types that only another
// file describes, such as Clang's std::string, for virtual bases, and for bytes of Rust enums at
// which several variants have members.
//
// Split units whose .dwo file or package is missing have file and line but no function name, unless
// the compiler left inlined calls in the skeleton. Names in a missing supplementary file are
// unknown. .debug_names and .gdb_index are not read. The former has no addresses. The latter would
// save one scan of the root entries: 35 ms for 30,000 units and 600,000 ranges. But it chooses
// differently from LLVM among overlapping units.
package dwarf
