package dialect

// The code that a kernel lists around the instruction that a report is about:
//
//	RIP: 0010:ledger_settle+0x5/0x20 [ledger]
//	Code: 0f 1f 40 00 0f 1f 44 00 00 <48> 83 04 25 08 00 00 00 …

// maxToCode is the number of lines that may be between the registers of a report and its code: old
// kernels of x86 and those of AArch64 list it after the stack.
const maxToCode = 96

// awaitCode makes later lines of code those of a frame, which the current line has as the place of an
// instruction.
func (r *Reader) awaitCode(f *Frame) {
	f.Listed = new(Code)
	r.kernel.code, r.kernel.codeAt = f.Listed, r.number
	r.openUntil(windowTrace, r.number+maxToCode)
}

// takeCode takes the code in text for the last frame that awaits it, and reports whether there is
// one. Nothing is taken from lines of the past.
func (n *kernelLog) takeCode(text []byte, line int64, inPast bool) bool {
	awaited := n.code
	n.code = nil
	if awaited == nil || inPast || line-n.codeAt > maxToCode {
		return false
	}
	if c, ok := parseCode(text); ok {
		*awaited = c
	}
	return true
}

// userCounter notes that the next code is that of a process.
func userCounter(r *Reader, _ []byte, _ int) { r.kernel.code = nil }
