package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// EntrySpan is the number of bytes from Entry in which a program calls the C library: the return
// address of this call is the outermost one of a stack.
const EntrySpan = 64

// Main returns the address of the function that the code at Entry passes to the C library, on
// x86-64. It is 0 if the code loads none.
func (f *File) Main() (addr uint64) {
	code := f.Loaded(f.Entry)
	code = code[:min(EntrySpan, len(code))]
	i := bytes.Index(code, []byte("\x48\x8d\x3d")) // lea main(%rip), %rdi
	if f.Machine != elf.EM_X86_64 || i < 0 || i+7 > len(code) {
		return 0
	}
	addr = f.Entry + uint64(i+7) + uint64(int64(int32(binary.LittleEndian.Uint32(code[i+3:]))))
	if !f.ExecCovers(addr) {
		return 0
	}
	return addr
}
