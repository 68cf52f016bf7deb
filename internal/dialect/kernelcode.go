package dialect

// A kernel's listing of the code around the instruction in a report:
//
//	RIP: 0010:ledger_settle+0x5/0x20 [ledger]
//	Code: 0f 1f 40 00 0f 1f 44 00 00 <48> 83 04 25 08 00 00 00 …

// maxToCode bounds the lines between the registers of a report and its code. Old x86 kernels and
// AArch64 kernels list the code after the stack.
const maxToCode = 96

// awaitCode makes takeCode assign the next code to f, the frame of an instruction in the current
// line. The next maxToCode lines are read for that.
func (r *Reader) awaitCode(f *Frame) {
	f.Listed = new(Code)
	r.kernel.code, r.kernel.codeAt = f.Listed, r.number
	r.openUntil(windowTrace, r.number+maxToCode)
}

// takeCode parses the code in text, and assigns it to the frame that awaits code. It returns true
// if a frame in the last maxToCode lines awaits code. Afterwards, no frame awaits code. For past
// lines, takeCode assigns nothing and returns false.
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

// userCounter handles a line with a user-space program counter. The code bytes that the log prints
// next are not kernel code, so no frame awaits them.
func userCounter(r *Reader, _ []byte, _ int) { r.kernel.code = nil }
