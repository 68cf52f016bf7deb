package dialect

import "bytes"

// entries are the kernel functions that save the registers of code stopped by an interrupt or a
// fault. The next frame has the address of the instruction at which the code was stopped. x86-64
// prints that frame only in recorded stacks, as by lockdep. Its other stacks have a line with RIP
// instead.
var entries = [][]byte{
	[]byte("el1h_64_"), []byte("el1t_64_"), []byte("el1_irq+"), []byte("el1_sync+"), []byte("el1_error+"), // arm64
	[]byte("asm_exc_"), []byte("asm_sysvec_"), []byte("asm_common_interrupt+"), // x86-64
	[]byte("ret_from_exception+"), []byte("handle_exception+"), // riscv
}

// isEntry reports whether text, the frame at b[from:], is one of entries and part of a stack. A
// function after "?" is just a value on the stack.
func isEntry(b []byte, from int, text []byte) bool {
	switch text[0] {
	case 'a', 'e', 'h', 'r':
	default:
		return false
	}
	if last := blanksBefore(b, from); last > 0 && b[last-1] == '?' || isListed(b[:from]) {
		return false
	}
	for _, name := range entries {
		if bytes.HasPrefix(text, name) {
			return true
		}
	}
	return false
}

// notInStack lists the texts before a function, or before its address, in lines outside of a stack:
// "hardirqs last  enabled at (567): [<ffffffff81600be2>] asm_common_interrupt+0x22/0x40".
var notInStack = [][]byte{[]byte("): "), []byte("at: "), []byte(" : ")}

// isListed reports whether the text before a function shows that the function is not part of a
// stack.
func isListed(before []byte) bool {
	if text, ok := bytes.CutSuffix(before, []byte(">] ")); ok {
		before = bytes.TrimSuffix(text[:hexBefore(text, len(text))], []byte("[<"))
	}
	for _, text := range notInStack {
		if bytes.HasSuffix(before, text) {
			return true
		}
	}
	return false
}

// isStopped reports whether an interrupt or a fault has stopped the code in the function
// b[from:end]. On arm, such a function follows the name of an entry: "__irq_svc from
// do_idle+0x1c/0x110". On arm64, " (P" may follow it. On any machine it may be in the line after an
// entry.
func (n *kernelLog) isStopped(b []byte, from, end int, line int64) bool {
	if n.entryAt > 0 && n.entryAt == line-1 {
		last := blanksBefore(b, from)
		return (last == 0 || b[last-1] != '?') && !isListed(b[:from])
	}
	if hasAt(b, end, " (P") {
		return true
	}
	before := b[:from]
	if bytes.HasSuffix(before, []byte(">] (")) { // "(__irq_svc) from [<c010f3a4>] (do_idle+0x1c"
		start := hexBefore(before, len(before)-len(">] ("))
		before, ok := bytes.CutSuffix(before[:start], []byte(") from [<"))
		return ok && bytes.HasSuffix(before, []byte("_svc"))
	}
	before, ok := bytes.CutSuffix(before, []byte(" from "))
	return ok && bytes.HasSuffix(before, []byte("_svc"))
}

// isWarning reports whether the text before a function is part of a warning's title. The function
// after the title contains a trapping instruction. On processors without a trap for warnings, the
// kernel calls a function, which prints its return address.
func isWarning(before []byte) bool { return bytes.Contains(before, []byte("WARNING: ")) }

// links are the texts before the return address in a register, which may also be the address of the
// fault.
var links = [][]byte{[]byte("lr : "), []byte("ra : "), []byte("LR is at ")}

func isLink(before []byte) bool {
	for _, text := range links {
		if bytes.HasSuffix(before, text) {
			return true
		}
	}
	return false
}
