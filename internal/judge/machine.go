package judge

import (
	"debug/elf"

	"github.com/symfilter/symfilter/internal/dialect"
)

const espRustLess = 4 // bytes that esp-backtrace subtracts on RISC-V

// espOnRISCV returns the kind of the address in a frame of ESP-IDF on RISC-V. Backtraces there have
// the addresses as they were on the stack. The address of a call of abort is a return address minus
// 3 bytes: it is odd, unlike the address of any instruction.
func (c *check) espOnRISCV(call dialect.Call) dialect.Call {
	switch {
	case call != dialect.Adjusted:
		return call
	case c.addr&1 != 0:
		c.addr += dialect.ESPLess
		return dialect.Return
	}
	return dialect.Either
}

// espRust restores a return address that esp-backtrace has logged, and returns dialect.Return.
// Before logging, esp-backtrace subtracts espRustLess bytes, or dialect.ESPLess on Xtensa. espRust
// leaves c.addr unchanged if no call ends at the original address.
func (c *check) espRust() dialect.Call {
	less := uint64(espRustLess)
	if c.of.image.File.Machine == elf.EM_XTENSA {
		less = dialect.ESPLess
	}
	if yes, _ := c.of.image.File.CallEndsAt(c.addr + less); yes {
		c.addr += less
	}
	return dialect.Return
}

// onAVR decides whether a frame's address counts bytes, as in the ELF file, or words of two bytes,
// as the program's own pointers do. Only a call before the address can decide this: most values are
// code addresses in both units. onAVR converts the address to bytes.
func (c *check) onAVR(call dialect.Call) dialect.Call {
	file := c.of.image.File
	inBytes, _ := file.CallEndsAt(c.addr)
	inWords, _ := file.CallEndsAt(2 * c.addr)
	switch {
	case inBytes == inWords:
		c.err = ErrWords
	case inWords:
		c.addr *= 2
	}
	return dialect.Return
}

// covers reports whether code is loaded at addr, which counts bytes or words.
func (m *Image) covers(addr uint64) bool {
	return m.isCode(addr) || m.File.Machine == elf.EM_AVR && m.isCode(2*addr)
}
