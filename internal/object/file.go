package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"os"
	"unsafe"
)

// A File is an open ELF file, with methods that need several layers. One goroutine at a time may
// use it. Any number of goroutines may read the results of its methods until Close.
type File struct {
	symbolTables
	unwind    unwind
	imports   importSlots
	main      uint64 // result of Main, if mainKnown is set
	mainKnown bool
}

// Open reads the headers of an ELF file of size bytes. If osFile is not nil, it must be the file
// that r reads; Open maps it if possible. Otherwise sections are read from r on demand. The caller
// closes r and osFile. r must be readable until Close; osFile may be closed after Open if r is
// another reader.
//
// A file with unreadable section headers still opens if its program headers are good, and vice
// versa; [File.Damage] returns the fault. Errors are a *[FormatError], a *[LimitError], or come
// from r.
func Open(r io.ReaderAt, size int64, osFile *os.File) (*File, error) {
	if size < 0 {
		return nil, &FormatError{"file size", fmt.Sprintf("%d bytes", size)}
	}
	f, err := openHeaders(r, uint64(size))
	if err != nil {
		return nil, err
	}
	if osFile != nil {
		if m, err := mapFile(osFile, size); err == nil {
			f.mapped = m
		} // else read on demand
	}
	return f, nil
}

func openHeaders(r io.ReaderAt, size uint64) (*File, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	f := new(File)
	f.header, f.r, f.size = h, r, size
	f.Class, f.Order = elf.ELFCLASS32, binary.LittleEndian
	if h.is64 {
		f.Class = elf.ELFCLASS64
	}
	if h.big {
		f.Order = binary.BigEndian
	}
	var segmentsErr, sectionsErr error
	var table []byte
	f.segments, segmentsErr = h.readSegments(r, f.size)
	f.sections, table, sectionsErr = h.readSections(r, f.size)
	if data, ok := r.(inHand); ok {
		f.image = f.imageOf(data)
		f.r = f.image
	}
	if sectionsErr == nil {
		sectionsErr = f.nameSections(table)
	}
	f.placeSections()
	f.listSections()
	f.damage = both(sectionsErr, segmentsErr)
	if f.damage != nil && len(f.segments) == 0 && len(f.sections) == 0 {
		return nil, f.damage
	}
	return f, nil
}

// both joins two errors in one line; either may be nil.
func both(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w; %w", a, b)
}

// Symbol returns the symbol at addr by the rule of llvm-symbolizer. It considers functions, objects
// and untyped symbols that are defined in a loaded section. The greatest address not above addr
// wins, then the largest size. Among aliases of equal size, it takes the last one in the table
// whose name does not begin with __GI_, as glibc's internal names do. With Options.LastAlias it
// takes the last alias, as in LLVM. The symbol must cover addr. A symbol without a size reaches to
// the next symbol. Unlike in LLVM, it ends with its section, and before another function of the
// unwind information.
//
// The table is .symtab, or .dynsym in a file whose .symtab is missing or empty. If that table has
// no symbol with a size for addr, .dynsym and MiniDebugInfo, which is unpacked, are searched by the
// same rule. The first symbol whose size covers addr is returned. Otherwise the nearest symbol
// without a size is returned, from the first table that has it.
//
// The first lookups scan a table in the file (1 ms for 130,000 symbols). Later ones use a sorted
// table of 16 bytes a symbol, built once.
func (f *File) Symbol(addr uint64) (Symbol, bool) {
	if f.closed {
		return Symbol{}, false
	}
	best, found := f.covering(addr)
	if found && best.Size == 0 && f.unwindSeparates(best.Addr, addr) {
		return Symbol{}, false
	}
	return best, found
}

// Close unmaps the file. Byte slices from the File's methods are invalid afterwards. A second Close
// does nothing.
func (f *File) Close() error {
	if f.closed {
		return nil
	}
	if f.mini.file != nil {
		f.mini.file.Close()
	}
	f.kept, f.symbols, f.dynamic, f.mini, f.unwind, f.imports = nil, symbols{}, nil, mini{}, unwind{}, importSlots{}
	return f.contents.close()
}

// Footprint returns the bytes of heap that the file holds: headers, inflated or read sections, the
// symbol table. It counts neither mapped pages nor the bytes that Options.Take granted.
func (f *File) Footprint() int64 {
	return int64(unsafe.Sizeof(*f)) + f.symbolTables.footprint() + f.unwind.footprint() + f.imports.footprint()
}
