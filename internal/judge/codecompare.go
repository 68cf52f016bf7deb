package judge

import (
	"bytes"
	"debug/elf"
	"encoding/binary"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// Bounds for the comparison of code in a log with code of a file. The kernel patches itself: see
// maskX86. The fractions in compareX86 are from Debian's kernel 6.1.0-56-amd64 on four processors,
// at 3.6 million addresses each. At each address, at least 5/8 of the compared bytes equal the
// file's; at all but 10 addresses, at least 3/4 do. None of 735,000 pairs of different addresses in
// the file agrees in 5/8 of the bytes.
const (
	minCompared = 16 // bytes that must be comparable
	// least number of AArch64 instructions that are equal in a match, or compared in a mismatch,
	// where all differ; a kernel lists five
	minWords = 4
)

// compareCode compares the listing with the code of the file around addr. matches is set for equal
// code, other for different code, and neither for an uncertain result.
func compareCode(file *object.File, c *dialect.Code, addr uint64) (matches, other bool) {
	code, start := file.Code(addr)
	want, before := c.Bytes(file.Order), uint64(c.At*c.Width)
	if addr-start >= uint64(len(code)) {
		return false, false
	}
	if at := addr - start; at >= before {
		code = code[at-before:]
	} else {
		want = want[before-at:]
	}
	n := min(len(code), len(want))
	code, want = code[:n], want[:n]
	switch {
	case file.Machine == elf.EM_X86_64 && c.Width == 1:
		return compareX86(code, want, file.Type == elf.ET_REL)
	case file.Machine == elf.EM_AARCH64 && c.Width == 4:
		return compareArm64(code, want)
	}
	return false, false
}

// compareX86 compares code of a file with code of a log. The code matches if at least three
// quarters of the compared bytes are equal. The file has other code if less than half are equal.
// With too few bytes to compare, or too few distinct values, neither is set. unlinked is set for a
// relocatable file.
func compareX86(code, want []byte, unlinked bool) (matches, other bool) {
	mask := maskX86(code, unlinked)
	count, equal := 0, 0
	var seen [256]bool
	values := 0
	for i, m := range mask {
		if m {
			continue
		}
		count++
		if code[i] == want[i] {
			equal++
		}
		if !seen[code[i]] {
			seen[code[i]] = true
			values++
		}
	}
	if count < minCompared || values < dialect.MinValues {
		return false, false
	}
	return 4*equal >= 3*count, 2*equal < count
}

// maskX86 marks the bytes of x86-64 code that may differ in a running kernel. These are lock
// prefixes, padding, kernel addresses, calls and jumps. The kernel also replaces calls and jumps by
// other code, for example for tracing, static calls and keys, return thunks, retpolines and
// paravirt calls; that code is marked, too. In relocatable files, maskX86 also marks the fields of
// relocations. The start of the first instruction is unknown, so maskX86 examines each byte, and
// may mark too many.
func maskX86(code []byte, unlinked bool) []bool {
	mask := make([]bool, len(code))
	mark := func(from, n int) {
		for i := from; i < min(from+n, len(code)); i++ {
			mask[i] = true
		}
	}
	for i, b := range code {
		rest := code[i:]
		for _, p := range patchedX86 {
			if b == p.code[0] && bytes.HasPrefix(rest, []byte(p.code)) {
				mark(i, p.size)
				break
			}
		}
		if b == 0x0f && len(rest) > 1 && rest[1]&0xf0 == 0x80 { // a conditional jump
			mark(i, 6)
		}
		if b == 0x65 { // the prefix gs, for the processor's own data
			mark(i+relativeToX86(rest), 4)
		}
		if len(rest) < 4 {
			continue
		}
		switch v := binary.LittleEndian.Uint32(rest); {
		case v-kernelLow < kernelSize, unlinked && v == 0:
			mark(i, 4)
		}
	}
	return mask
}

// Range of kernel addresses on x86-64, in their lower 32 bits.
const (
	kernelLow  = 0x81000000
	kernelSize = 0x04000000
)

// A patched describes instructions that a kernel may replace: their first bytes, and how many bytes
// from the first one may be replaced.
type patched struct {
	code string
	size int
}

var patchedX86 = []patched{
	{"\xe8", 5}, {"\xe9", 5}, {"\xeb", 2}, {"\xff\x15", 6}, {"\xff\x14\x25", 7},
	{"\x0f\x1f\x44", 5}, {"\x0f\x1f\x40", 4}, {"\x0f\x1f\x80", 7}, {"\x0f\x1f", 3}, {"\x66\x90", 2},
	{"\xf3\x0f\x1e\xfa", 4}, {"\xf0", 1}, {"\x3e", 1}, {"\x90", 1}, {"\xcc", 1},
}

// relativeToX86 returns the offset of the four-byte displacement of a RIP-relative operand. It
// returns len(code) if the instruction has no such operand. The instruction at the start of code
// begins with a segment prefix.
func relativeToX86(code []byte) int {
	at := 1
	if at < len(code) && code[at]&0xf0 == 0x40 { // REX
		at++
	}
	if at < len(code) && code[at] == 0x0f {
		at++
	}
	if at++; at < len(code) && code[at]&0xc7 == 5 {
		return at + 1
	}
	return len(code)
}

// compareArm64 compares code of a file with code of a log, usually five instructions. The code
// matches if at least four instructions and three quarters of all are equal, unless the file's
// instructions are all alike. The file has other code if at least four instructions are comparable
// and none of these is equal. The nops and branches that kernels patch are not comparable.
func compareArm64(code, want []byte) (matches, other bool) {
	count, equal, all := 0, 0, 0
	var first uint32
	differ := false
	for i := 0; i+4 <= len(code); i += 4 {
		is, was := binary.LittleEndian.Uint32(code[i:]), binary.LittleEndian.Uint32(want[i:])
		if i == 0 {
			first = is
		}
		differ = differ || is != first
		branch := is>>26&0x1f == 5
		if is == was {
			all++
		}
		if is == arm64Nop || was == arm64Nop || branch {
			continue
		}
		count++
		if is == was {
			equal++
		}
	}
	return all >= minWords && 4*all >= 3*(len(code)/4) && differ, count >= minWords && equal == 0
}

const arm64Nop = 0xd503201f

// compareListed compares the code that the log lists around f's instruction with the file's code.
func (c *check) compareListed(f *Frame) {
	if f.Listed == nil || len(f.Listed.Units) == 0 || c.of.identifies(f) {
		return
	}
	matches, other := false, false
	c.of.image.visit(func(file *object.File) { matches, other = compareCode(file, f.Listed, c.addr) })
	switch {
	case matches:
		c.agree()
		c.verified = ByCode
	case other && !c.of.image.Forced:
		c.err, c.of.refuted = ErrCode, ErrCode
	}
}
