package object

import (
	"debug/elf"
	"encoding/binary"
)

// CallTarget returns the target of the direct call that ends at addr, on x86, x86-64, little-endian
// Arm, AArch64 and RISC-V. The address of a function in Thumb code is even. ok is false if no such
// call ends at addr, or if its target is not code of this file. If the called function is in
// another file, the target is the stub that jumps to the function: see [File.CalledImport].
func (f *File) CallTarget(addr uint64) (target uint64, ok bool) {
	var buf [8]byte
	code, ok := f.codeBefore(buf[:], addr)
	if !ok {
		return 0, false
	}
	c := callSite{&f.headers, addr, code}
	switch f.Machine {
	case elf.EM_X86_64, elf.EM_386:
		target, ok = c.x86Target()
	case elf.EM_AARCH64:
		w := c.little(4)
		target, ok = addr-4+signed(w<<6, 4), addr%4 == 0 && w>>26 == 0x25
	case elf.EM_ARM:
		target, _, ok = c.armTarget()
	case elf.EM_RISCV:
		target, ok = c.riscvTarget()
	default:
		return 0, false
	}
	target = f.wrap(target)
	return target, ok && f.ExecCovers(target)
}

// CallsThumb reports whether the direct call that ends at addr leads to Thumb code.
func (f *File) CallsThumb(addr uint64) bool {
	var buf [4]byte
	code, ok := f.codeBefore(buf[:], addr)
	if !ok || f.Machine != elf.EM_ARM {
		return false
	}
	c := callSite{&f.headers, addr, code}
	_, thumb, ok := c.armTarget()
	return ok && thumb
}

// signed returns w as a signed number, shifted to the right by n.
func signed(w uint32, n int) uint64 { return uint64(int64(int32(w) >> n)) }

func (c *callSite) x86Target() (target uint64, ok bool) {
	n := len(c.code)
	if n < 5 || c.code[n-5] != 0xe8 {
		return 0, false
	}
	return c.addr + signed(binary.LittleEndian.Uint32(c.code[n-4:]), 0), true
}

// armTarget decodes bl and blx in Arm and Thumb code. Before an even address, the code may be Arm
// or Thumb code. thumb is set if the call leads to Thumb code.
func (c *callSite) armTarget() (target uint64, thumb, ok bool) {
	end, w := c.addr&^1, c.little(4)
	switch {
	case c.h.big:
		return 0, false, false
	case c.addr%4 == 0 && w&0x0f000000 == 0x0b000000 && w>>28 != 15: // bl
		return end + 4 + signed(w<<8, 6), false, true
	case c.addr%4 == 0 && w&0xfe000000 == 0xfa000000: // blx, to Thumb code
		return end + 4 + signed(w<<8, 6) + uint64(w>>23&2), true, true
	}
	first, second := w&0xffff, w>>16
	if first&0xf800 != 0xf000 || second&0xd000 != 0xd000 && second&0xd001 != 0xc000 {
		return 0, false, false
	}
	sign := first >> 10 & 1
	high, low := ^(second>>13^sign)&1, ^(second>>11^sign)&1
	offset := signed((sign<<24|high<<23|low<<22|first&0x3ff<<12|second&0x7ff<<1)<<7, 7)
	thumb = second&0x1000 != 0
	if !thumb { // blx, to Arm code
		end &^= 3
	}
	return end + offset, thumb, true
}

// riscvTarget decodes jal, auipc with jalr, and c.jal, which only 32-bit code has.
func (c *callSite) riscvTarget() (target uint64, ok bool) {
	w, before := c.little(4), c.little(8)
	switch {
	case c.addr%2 != 0 || !c.riscv():
		return 0, false
	case w&0x7f == 0x6f:
		offset := w>>31<<20 | w>>12&0xff<<12 | w>>20&1<<11 | w>>21&0x3ff<<1
		return c.addr - 4 + signed(offset<<11, 11), true
	case w&0x707f == 0x67: // jalr
		if before&0x7f != 0x17 || before>>7&31 != w>>15&31 {
			return 0, false
		}
		return c.addr - 8 + signed(before&^0xfff, 0) + signed(w, 20), true
	case !c.h.is64 && w>>16&0xe003 == 0x2001: // c.jal
		h := w >> 16
		offset := h>>12&1<<11 | h>>8&1<<10 | h>>9&3<<8 | h>>6&1<<7 | h>>7&1<<6 | h>>2&1<<5 | h>>11&1<<4 | h>>3&7<<1
		return c.addr - 2 + signed(offset<<20, 20), true
	}
	return 0, false // c.jalr
}
