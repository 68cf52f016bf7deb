// Package dwarf answers two questions from DWARF debug information read in place: which functions, files and lines an address of code is in, and
// which member of which variable an address of data.
//
// It reads versions 2 to 5, in 32- and 64-bit form and both byte orders, straight from the bytes of an [object.File], which usually
// are the mapped file. Nothing is parsed before it is needed: a first lookup takes one linear look at .debug_aranges, then parses the one
// unit that covers the address. What was parsed is kept, in slices without pointers, until [Data.Shrink] drops it.
//
// # Rules
//
// The answers are those of LLVM 19's llvm-symbolizer. Where several descriptions cover an address, its choice is imitated: see
// the comments of sweep (units), pick (functions and inlined calls) and lineAt (rows). Ranges of code that the linker threw away, which start at 0
// or at one of the two highest addresses, are ignored.
//
// # Variables
//
// Nothing lists the addresses of variables, and the entries of a big file are too many to be read for one. But nearly all compilers write them in the same
// nine bytes or as an index into .debug_addr, so that the first question passes over the bytes of the whole .debug_info, 4 GB in a second, and keeps which
// units have an address of data where. A type is read anew for each question, as far as that leads: its entries are walked, never turned into a graph.
//
// # Damaged and hostile files
//
// No input makes this package panic, loop or allocate more than a small multiple of the bytes it was given. Every offset is checked against the section
// it points into, every count against the bytes that remain, every chain and depth against a constant of limits.go, and all the work of one
// lookup against a budget. Damage in one unit leaves the others usable. (A mapped file that shrinks still faults: that is the caller's to recover.)
//
// # Left out
//
// Variables in .debug_info that is compressed and larger than 64 MiB, or larger than 1 GiB: the name of the symbol must do. Types that only another file
// describes, as Clang's std::string. What virtual bases have inside. Of Rust's enums, what more than one variant has at a byte.
//
// Split units whose .dwo or package cannot be had give file and line but no function name, unless the compiler left inlined calls in the skeleton. Names
// in a supplementary file that is missing are unknown. .debug_names and .gdb_index are not read: the former has no addresses, the
// latter would save one pass over the root entries, which takes 35 ms where there are 30,000 units and 600,000 ranges, and its choice where
// units overlap is not LLVM's.
package dwarf
