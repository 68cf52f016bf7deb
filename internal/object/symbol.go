package object

import "debug/elf"

// A Symbol is an entry of the symbol table.
type Symbol struct {
	Name  []byte // aliases the file, valid until Close
	Addr  uint64 // link-time address, without the Thumb bit
	Size  uint64 // bytes, 0 when not known
	Type  elf.SymType
	Local bool
}

type symbols struct{}

func (symbols) footprint() int64 { return 0 }

// Symbol returns the symbol that covers addr.
func (f *File) Symbol(addr uint64) (Symbol, bool) { return Symbol{}, false }
