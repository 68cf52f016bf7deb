package dialect

import "bytes"

// The kernel's line about a process killed by a fault:
//
//	inventory[4711]: segfault at 10 ip 000055d0c0a012d2 sp 00007ffd error 6 in inventory[12d2,55d0c0a01000+1000] likely on CPU 1 (core 1, socket 0)
//	traps: inventory[4711] trap invalid opcode ip:55d0c0a012d2 sp:7ffd error:0 in inventory[55d0c0a01000+1000]
//	inventory[4711]: unhandled signal 11 code 0x1 at 0x0000000000000010 in inventory[12d2,2aaaaaa000+1000]
//	inventory[4711]: segfault (11) at 10 nip 10000754 lr 10000750 code 1 in inventory[10000000+10000]
//
// The line has the last part of the file's path. The brackets hold the mapping and, from Linux 6.1
// on, the offset in the file. The address is exact. On x86 and PowerPC, the next line lists the
// code around this address, which proves whether a file has run.
var death = Dialect{
	Name: "kernel-segv", Who: "Linux: the kernel's line about a process killed by a fault",
	Needs:  "the code on the next line, and a file with the name in the line; or --image",
	Sample: "inventory[4711]: segfault at 10 ip 000055d0c0a012d2 sp 00007ffd error 6 in inventory[12d2,55d0c0a01000+1000]",
}

// matchDeath matches the line whose "ip" is at the given offset. PowerPC prints "nip".
func matchDeath(r *Reader, l *Line, at int) bool {
	b := l.Text
	if len(b) < at+4 {
		return false
	}
	separator := string(b[at+2 : at+3])
	addr, end, ok := hexAt(b, at+3)
	if !ok || separator != " " && separator != ":" {
		return false
	}
	before := at - 1 // offset of the blank before "ip"
	stack, code := " sp"+separator, " error"+separator
	if b[before] == 'n' {
		before--
		stack, code = " lr ", " code "
	}
	if before < 0 || b[before] != ' ' || !hasAt(b, end, stack) {
		return false
	}
	if _, end, ok = hexAt(b, end+len(stack)); !ok || !hasAt(b, end, code) {
		return false
	}
	if _, end, ok = hexAt(b, end+len(code)); !ok {
		return false
	}
	close := processBefore(b, before)
	if close < 0 {
		return false
	}
	if separator == " " { // "]: segfault at 10", "]: segfault (11) at 10", "]: bus error (7) at 10"
		from := hexBefore(b, before)
		if !hasAt(b, close, "]: ") || !endsWith(b, from, " at ") {
			return false
		}
	}
	return r.died(l, close, end, addr)
}

// matchUnhandled matches a line of RISC-V or AArch64, which has no instruction pointer. The "0x" at
// the given offset begins the code of the fault, or the accessed address.
func matchUnhandled(r *Reader, l *Line, at int) bool {
	b := l.Text
	if last := b[len(b)-1]; last != ']' && last != ')' && last != ' ' && last != '\t' {
		return false
	}
	is := func(text string) bool { return endsWith(b, at, text) }
	if !is(" code ") && !is(" at ") && !is(" ESR ") && !is(" esr ") {
		return false
	}
	end := hexDigits(b, at+len("0x"))
	comma := hasAt(b, end, ", ") && end+2 < len(b) && isLetter(b[end+2])
	if !comma && !hasAt(b, end, " at ") && !hasAt(b, end, " in ") {
		return false
	}
	in := bytes.Index(b[at:], []byte(" in "))
	if in < 0 {
		return false
	}
	mark := bytes.Index(b[:at], []byte("]: unhandled "))
	return mark >= 0 && processBefore(b, mark+1) == mark && r.died(l, mark, at+in, 0)
}

// processBefore returns the offset of the last "]" in b[:end] if it ends a "[PID]", or -1.
func processBefore(b []byte, end int) int {
	close := bytes.LastIndexByte(b[:end], ']')
	if close < 0 {
		return -1
	}
	if _, open, ok := decimalBefore(b, close); !ok || open < 1 || b[open-1] != '[' {
		return -1
	}
	return close
}

// died adds the frame of a killed process, whose PID ends at the offset close. Its file and mapping
// follow at the offset at: " in FILE[OFFSET,START+SIZE]".
func (r *Reader) died(l *Line, close, at int, addr uint64) bool {
	b := bytes.TrimRight(l.Text, " \t")
	end := len(b)
	if i := bytes.LastIndex(b, []byte(" likely on CPU ")); i > at && b[end-1] == ')' {
		b = b[:i]
	}
	if !hasAt(b, at, " in ") || b[len(b)-1] != ']' {
		return false
	}
	open := bytes.LastIndexByte(b, '[')
	name := at + len(" in ")
	if open <= name || open-name > maxPath {
		return false
	}
	first, next, ok := hexAt(b, open+1)
	offset, hasOffset := first, false
	if ok && hasAt(b, next, ",") {
		hasOffset = true
		first, next, ok = hexAt(b, next+1)
	}
	if !ok || !hasAt(b, next, "+") {
		return false
	}
	size, next, ok := hexAt(b, next+1)
	if !ok || next != len(b)-1 || size == 0 || first+size < first || addr != 0 && addr-first >= size {
		return false
	}
	if hasOffset && addr != 0 && (addr-offset)%PageSize != 0 {
		return false
	}
	f := l.frame()
	f.Number = 0
	f.Module = string(bytes.TrimSuffix(b[name:open], []byte(" (deleted)")))
	f.Addr, f.Call = addr, Exact
	f.Crash, r.deaths.at, r.kernel.code = r.deaths.add(first, size), r.number, nil
	switch {
	case hasOffset:
		f.Kind, f.Value = FileOffset, offset
	case addr != 0:
		f.Kind, f.Value = CodeOffset, addr-first
	default:
		f.Kind, f.Value = CodeOffset, size // unknown until the registers are logged
	}
	f.Start = processName(b, close)
	l.after(f, end)
	return true
}

// maxComm is the maximum length of a process name in the kernel, in bytes. The name may contain
// blanks.
const maxComm = 15

// processName returns the offset at which a process's name begins. The PID of the process ends at
// the offset close.
func processName(b []byte, close int) int {
	_, open, _ := decimalBefore(b, close)
	end := open - 1
	from := max(0, end-maxComm-2)
	part := b[from:end]
	for _, mark := range []string{": ", "] ", "> "} {
		if i := bytes.LastIndex(part, []byte(mark)); i >= 0 {
			return from + i + len(mark)
		}
	}
	if from == 0 {
		return 0
	}
	return bytes.LastIndexAny(b[:end], " ;>") + 1
}
