package object

import (
	"debug/elf"
	"encoding/binary"
)

// CallEndsAt reports whether the instruction that ends at addr is a call, so that addr may be a
// return address. It is for formats that do not mark return addresses. known is false if the file
// has no code before addr, as in separate debug files, or if the machine is not supported. It
// supports x86, x86-64, Arm (32 bits, little-endian; only Thumb if addr is odd), AArch64, RISC-V,
// PowerPC, s390x, MIPS (not microMIPS), LoongArch, AVR, and little-endian Xtensa. On MIPS a call
// ends after its delay slot.
//
// Only the bytes before addr are examined. On x86, instructions begin at any address: one in a
// thousand addresses that do not follow a call counts as a return address. On Xtensa and AVR it is
// one in sixteen, on the other machines none.
func (f *File) CallEndsAt(addr uint64) (yes, known bool) {
	var buf [8]byte
	code, ok := f.codeBefore(buf[:], addr)
	if !ok {
		return false, false
	}
	c := callSite{&f.headers, addr, code}
	switch f.Machine {
	case elf.EM_X86_64, elf.EM_386:
		return c.x86(), true
	case elf.EM_AARCH64:
		return c.aarch64(), true
	case elf.EM_ARM:
		return !f.big && c.arm(), !f.big // in big-endian files, code may be little-endian
	case elf.EM_RISCV:
		return c.riscv(), true
	case elf.EM_PPC, elf.EM_PPC64:
		return c.powerpc(), true
	case elf.EM_S390:
		return c.s390(), true
	case elf.EM_MIPS:
		return c.mips(), addr%4 == 0 // else microMIPS
	case elf.EM_LOONGARCH:
		return c.loongarch(), true
	case elf.EM_AVR:
		return c.avr(), true
	case elf.EM_XTENSA:
		known = len(code) >= 3 && !f.big
		return known && c.xtensa(), known
	}
	return false, false
}

// InCall returns an address in the call that precedes addr, a return address. It usually returns
// addr-1. On Arm, it first clears the Thumb bit of addr. On MIPS, a call may have a delay slot:
// InCall then returns the address of the byte before this slot.
func (f *File) InCall(addr uint64) uint64 {
	const slot = 4 // bytes
	var buf [2 * slot]byte
	if f.Machine == elf.EM_ARM {
		return addr&^1 - 1
	}
	if f.Machine != elf.EM_MIPS || addr%slot != 0 {
		return addr - 1
	}
	code, ok := f.codeBefore(buf[:], addr)
	if !ok || len(code) < len(buf) || !slotFollows(f.u32(code)) {
		return addr - 1
	}
	return addr - slot - 1
}

// codeBefore copies the code right before addr to buf: as much as fits and is in the same section.
// In a file without sections, the code must be in the same segment.
func (d *sectionData) codeBefore(buf []byte, addr uint64) (code []byte, ok bool) {
	if d.Machine == elf.EM_ARM {
		addr &^= 1
	}
	if d.closed || addr == 0 {
		return nil, false
	}
	if d.Type == elf.ET_REL {
		data, start := d.Code(addr - 1)
		if end := addr - start; data != nil && end <= uint64(len(data)) {
			return buf[:copy(buf, data[end-min(end, uint64(len(buf))):end])], true
		}
		return nil, false
	}
	code, start, ok := d.codeAround(addr - 1)
	if !ok {
		return nil, false
	}
	return buf[:copy(buf, code[addr-start-min(addr-start, uint64(len(buf))):addr-start])], true
}

// codeFrom returns the code from addr to the end of its segment; nil if the file has none.
func (d *sectionData) codeFrom(addr uint64) []byte {
	code, start, ok := d.codeAround(addr)
	if !ok {
		return nil
	}
	return code[addr-start:]
}

// codeAround returns the code from the start of the section with addr to the end of the segment,
// and the address where the code starts. Without sections, the code starts with the segment. ok is
// false if the file has no code at addr. Unlike Loaded, codeAround looks only at sections with
// code: a file may have many other sections.
func (d *sectionData) codeAround(addr uint64) (code []byte, start uint64, ok bool) {
	if len(d.sections) > 1 {
		s := d.codeSection(addr)
		if s == nil || s.Type == elf.SHT_NOBITS {
			return nil, 0, false
		}
		start = s.Addr
	}
	for i := range d.segments {
		p := &d.segments[i]
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_X == 0 || addr < p.Addr || addr-p.Addr >= p.FileSize {
			continue
		}
		data := d.SegmentData(i)
		if addr-p.Addr >= uint64(len(data)) {
			return nil, 0, false
		}
		start = max(start, p.Addr)
		return data[start-p.Addr:], start, true
	}
	return nil, 0, false
}

// A callSite is the code right before an address, at most 8 bytes. Each machine's method reports
// whether the code ends in a call.
type callSite struct {
	h    *headers
	addr uint64
	code []byte
}

// little returns the little-endian 32-bit word that begins n bytes before the address; 0 if the
// code is shorter.
func (c *callSite) little(n int) uint32 {
	if n > len(c.code) {
		return 0
	}
	return binary.LittleEndian.Uint32(c.code[len(c.code)-n:])
}

// ordered returns the same word as little, but in the byte order of the file.
func (c *callSite) ordered(n int) uint32 {
	if n > len(c.code) {
		return 0
	}
	return c.h.u32(c.code[len(c.code)-n:])
}

// x86 reports whether the code ends in a call: a relative call whose target is code, or a call
// through a register or memory. It ignores prefixes.
func (c *callSite) x86() bool {
	code, n := c.code, len(c.code)
	if n >= 5 && code[n-5] == 0xe8 {
		target := c.h.wrap(c.addr + uint64(int64(int32(binary.LittleEndian.Uint32(code[n-4:])))))
		// in an object file a relocation sets the target
		if c.h.Type == elf.ET_REL || c.h.ExecCovers(target) {
			return true
		}
	}
	for size := 2; size <= 7 && size <= n; size++ {
		if code[n-size] == 0xff && callForm(code[n-size+1:]) {
			return true
		}
	}
	return false
}

// callForm reports whether b is exactly the operand of a call with opcode FF: ModR/M with 2 in its
// middle field, SIB, displacement.
func callForm(b []byte) bool {
	if b[0]>>3&7 != 2 {
		return false
	}
	mode, rm := b[0]>>6, b[0]&7
	size := 1
	if mode != 3 && rm == 4 {
		size = 2
		if len(b) < 2 {
			return false
		}
	}
	switch {
	case mode == 1:
		size++
	case mode == 2, mode == 0 && rm == 5, mode == 0 && rm == 4 && b[1]&7 == 5:
		size += 4
	}
	return len(b) == size
}

func (c *callSite) aarch64() bool {
	w := c.little(4)
	bl, blr, blraa := w>>26 == 0x25, w&0xfffffc1f == 0xd63f0000, w&0xfefff800 == 0xd63f0800
	return c.addr%4 == 0 && (bl || blr || blraa)
}

func (c *callSite) arm() bool {
	w := c.little(4)
	if c.addr%2 == 1 {
		return thumbCall(w)
	}
	bl, blx, blxr := w&0x0f000000 == 0x0b000000 && w>>28 != 15, w&0xfe000000 == 0xfa000000, w&0x0ffffff0 == 0x012fff30 && w>>28 != 15
	return c.addr%4 == 0 && (bl || blx || blxr) || thumbCall(w)
}

// thumbCall reports whether w, the two halfwords before an address, ends in a call.
func thumbCall(w uint32) bool {
	first, second := w&0xffff, w>>16
	// bl, blx
	long := first&0xf800 == 0xf000 && (second&0xd000 == 0xd000 || second&0xd001 == 0xc000)
	// blx to a register
	return long || second&0xff87 == 0x4780
}

func (c *callSite) riscv() bool {
	w := c.little(4)
	linked := w>>7&31 == 1 || w>>7&31 == 5
	long := linked && (w&0x7f == 0x6f || w&0x707f == 0x67) // jal, jalr
	h := w >> 16
	short := h&0xf07f == 0x9002 && h&0xf80 != 0 || // c.jalr
		!c.h.is64 && h&0xe003 == 0x2001 // c.jal
	return c.addr%2 == 0 && (long || short)
}

func (c *callSite) powerpc() bool {
	w := c.ordered(4)
	bl := w&0xfc000001 == 0x48000001
	// not bcl 20,31,.+4, which only reads the program counter
	bcl := w&0xfc000001 == 0x40000001 && w != 0x429f0005
	register := w&0xfc00ffff&^0x1800 == 0x4c000421 || w&0xfc00ffff&^0x1800 == 0x4c000021
	return c.addr%4 == 0 && (bl || bcl || register)
}

func (c *callSite) mips() bool {
	compact := c.ordered(4) // a compact call of MIPS release 6, without a delay slot
	return c.addr%4 == 0 && (slotFollows(c.ordered(8)) || compact>>26 == 0x3a || compact&0xffe00000 == 0xf8000000)
}

// slotFollows reports whether w is a call of MIPS with a delay slot: jal, jalx, jalr, bal.
func slotFollows(w uint32) bool {
	return w>>26 == 3 || w>>26 == 0x1d || w&0xfc1f003f == 0x00000009 && w>>11&31 != 0 || w&0xfc1c0000 == 0x04100000
}

// s390 reports whether the code ends in a call: brasl, bras, bas and basr.
func (c *callSite) s390() bool {
	code, n := c.code, len(c.code)
	if c.addr%2 != 0 {
		return false
	}
	if n >= 6 && code[n-6] == 0xc0 && code[n-5]&0x0f == 5 {
		offset := int64(int32(c.h.u32(code[n-4:])))
		if c.h.Type == elf.ET_REL || c.h.ExecCovers(c.addr-6+uint64(2*offset)) {
			return true
		}
	}
	if n >= 4 && (code[n-4] == 0xa7 && code[n-3]&0x0f == 5 || code[n-4] == 0x4d) {
		return true
	}
	return n >= 2 && code[n-2] == 0x0d && code[n-1]&0x0f != 0
}

func (c *callSite) loongarch() bool {
	w := c.little(4)
	return c.addr%4 == 0 && (w>>26 == 0x15 || w>>26 == 0x13 && w&31 == 1) // bl, jirl
}

func (c *callSite) avr() bool {
	call := c.little(4)
	h := call >> 16
	// call, rcall, icall, eicall
	return c.addr%2 == 0 && (call&0xfe0e == 0x940e || h&0xf000 == 0xd000 || h == 0x9509 || h == 0x9519)
}

func (c *callSite) xtensa() bool {
	b := c.code[len(c.code)-3:]
	// call0 to call12, callx0 to callx12
	call, callx := b[0]&0x0f == 5, b[0]&0xcf == 0xc0 && b[1]&0xf0 == 0 && b[2] == 0
	return call || callx
}
