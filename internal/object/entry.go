package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
)

// EntrySpan bounds, in bytes, the code from Entry to the call of the C library's start function.
// The return address of that call is the outermost address of a stack.
const EntrySpan = 64

// Main returns the address of the function that the code at Entry passes to the C library, or 0 if
// that code passes none. It works on x86-64, AArch64, 64-bit RISC-V and in Thumb code.
func (f *File) Main() (addr uint64) {
	if !f.mainKnown {
		f.main, f.mainKnown = f.findMain(), true
	}
	return f.main
}

func (f *File) findMain() (addr uint64) {
	code := f.Loaded(f.Entry)
	code = code[:min(EntrySpan, len(code))]
	switch f.Machine {
	case elf.EM_X86_64:
		if i := bytes.Index(code, []byte("\x48\x8d\x3d")); i >= 0 && i+7 <= len(code) { // lea main(%rip), %rdi
			addr = f.Entry + uint64(i+7) + signed(binary.LittleEndian.Uint32(code[i+3:]), 0)
		}
	case elf.EM_AARCH64:
		addr = f.argument(code, 4, aarch64Argument)
	case elf.EM_RISCV:
		addr = f.argument(code, 2, riscvArgument)
	case elf.EM_ARM:
		addr = f.thumbMain()
	}
	if !f.ExecCovers(addr) {
		return 0
	}
	return addr
}

// argument returns the address that a pair of successive instructions loads into the register of
// the first argument, or 0 if code has no such pair. code begins at Entry; its instructions begin
// at multiples of align. decode gets two instructions, the first of which is at the address at, and
// returns the address that they compute. load is set if the register gets the word stored at that
// address.
func (f *File) argument(code []byte, align int, decode func(at uint64, first, second uint32) (addr uint64, load, ok bool)) (addr uint64) {
	for i := 0; i+8 <= len(code); i += align {
		at, load, ok := decode(f.Entry+uint64(i), binary.LittleEndian.Uint32(code[i:]), binary.LittleEndian.Uint32(code[i+4:]))
		if !ok {
			continue
		}
		if load {
			slot := at
			at = 0
			f.RelativeRelocations(func(place, value uint64) bool {
				if place == slot {
					at = value
				}
				return place != slot
			})
		}
		return at
	}
	return 0
}

// aarch64Argument decodes adrp x0 followed by ldr x0, [x0] or add x0, x0.
func aarch64Argument(at uint64, first, second uint32) (addr uint64, load, ok bool) {
	low := second >> 10 & 0xfff
	load = second&0xffc003ff == 0xf9400000
	if load {
		low *= 8
	}
	return adrp(at, first) + uint64(low), load, first&0x9f00001f == 0x90000000 && (load || second&0xffc003ff == 0x91000000)
}

// adrp returns the address of the page that w computes: an adrp instruction of AArch64 at the given
// address.
func adrp(at uint64, w uint32) uint64 {
	return at&^0xfff + signed((w>>5&0x7ffff<<2|w>>29&3)<<11, 11)<<12
}

// riscvArgument decodes auipc a0 followed by ld a0, (a0) or addi a0, a0.
func riscvArgument(at uint64, first, second uint32) (addr uint64, load, ok bool) {
	load = second&0xfffff == 0x53503
	return at + signed(first&^0xfff, 0) + signed(second, 20), load, first&0xfff == 0x517 && (load || second&0xfffff == 0x50513)
}

// thumbMain returns the address of the function that glibc's entry in Thumb code passes on. The
// entry loads that address from a slot relative to an address in r3: ldr r10, offset; adr r3,
// table; ldr r0, slot; ldr r0, [r10, r0].
func (f *File) thumbMain() uint64 {
	entry, le := f.Entry&^1, binary.LittleEndian
	code := f.Loaded(entry)
	code = code[:min(EntrySpan, len(code))]
	literal := func(at, words uint64) (value, place uint64) {
		place = (entry+at+4)&^3 + 4*words
		if i := place - entry; i+4 <= uint64(len(code)) {
			value = uint64(le.Uint32(code[i:]))
		}
		return value, place
	}
	var offset, table, slot uint64
	for i := uint64(0); i+4 <= uint64(len(code)); i += 2 {
		switch w := le.Uint32(code[i:]); {
		case w&0xf003ffff == 0xa000f8df: // ldr.w r10, [pc, #n]
			offset, _ = literal(i, uint64(w>>18&0x3ff))
		case w&0xff00 == 0xa300: // adr r3
			_, table = literal(i, uint64(w&0xff))
		case w&0xff00 == 0x4800: // ldr r0, [pc, #n]
			slot, _ = literal(i, uint64(w&0xff))
		case w == 0x0000f85a: // ldr.w r0, [r10, r0]
			if word := f.Loaded(f.wrap(table + offset + slot)); offset != 0 && table != 0 && len(word) >= 4 {
				return uint64(le.Uint32(word)) &^ 1
			}
		}
	}
	return 0
}
