package judge

import (
	"debug/elf"

	"github.com/symfilter/symfilter/internal/dialect"
)

const espRustLess = 4 // bytes that are subtracted on RISC-V

// espOnRISCV returns what the address of a frame of ESP-IDF is in code of RISC-V, where the
// addresses of a backtrace are as they were on the stack. That of abort is a return address without
// 3 bytes: an odd address, which no instruction has.
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

// espRust returns the kind of an address in a frame of esp-backtrace: that of the call after which
// the frame returns.
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

// onAVR decides whether the address of a frame counts bytes, as in the ELF file, or words of two
// bytes, as return addresses and pointers to functions do in the program. Only a call before the
// address shows which: most values are addresses of code in both ways. The address becomes one in
// bytes.
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

// covers reports whether code is loaded at addr, in bytes or in words.
func (m *Image) covers(addr uint64) bool {
	return m.isCode(addr) || m.File.Machine == elf.EM_AVR && m.isCode(2*addr)
}
