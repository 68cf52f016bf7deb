package dialect

import (
	"bytes"
	"debug/elf"
	"fmt"
	"sync"
)

// Dumps of firmware: registers by name, and lists of addresses. All addresses are addresses in the
// ELF file, which the operator names. In some lines, only a register's name shows that a number is
// an address: such lines are read only if [Reader.Firmware] is set.
//
// Zephyr, NuttX, Mbed OS, RT-Thread, ESP-IDF and handlers of HardFault print:
//
//	E: r3/a4:  0x20000bd0 r12/ip:  0x0000000a r14/lr:  0x000004a5
//	E: Faulting instruction address (r15/pc): 0x000004b2
//	E:       0: ra: 80000038
//	up_dump_register: R12: 00000000 FP: 00000000 SP: 20001f50 LR: 0000004b PC: 00000064
//	LR   : 0000B8D1
//	MEPC    : 0x4200a1b2  RA      : 0x4200a1c4  SP      : 0x3fc98340
var registers = Dialect{
	Name: "registers", Who: "firmware: the registers pc, lr, ra and epc that Zephyr, NuttX, Mbed OS, RT-Thread, ESP-IDF, FreeRTOS and HardFault handlers print",
	Needs:  "--image FILE, the firmware",
	Sample: "E: Faulting instruction address (r15/pc): 0x000004b2",
}

// A register describes the name of a register or of another address: how the value after the name
// is read.
type register struct {
	call Call
	ok   bool // the value may be a code address

	assigned bool        // only after ":" or "=": Go prints "rip    0x4979b2" after its own frame
	machine  elf.Machine // only on this machine
	with     string      // only if the line also has this text
	hint     bool        // the value may be something else than a code address
	x86      bool        // a register of x86
}

// registerNames are the lower-case names of registers with code addresses. The names after them
// belong to other addresses: Mbed OS prints the location of an error and the function of a thread,
// Arduino on ESP8266 the caller of an allocation.
var registerNames = sync.OnceValue(func() map[string]register {
	return map[string]register{
		"pc": {call: Exact, ok: true}, "epc": {call: Exact, ok: true}, "epc1": {call: Exact, ok: true}, "mepc": {call: Exact, ok: true}, "sepc": {call: Exact, ok: true},
		"elr": {call: Exact, ok: true}, "elr_eln": {call: Exact, ok: true}, "elr_el1": {call: Exact, ok: true}, "elr_el2": {call: Exact, ok: true}, "elr_el3": {call: Exact, ok: true},
		"eip": {call: Exact, ok: true, assigned: true, x86: true}, "rip": {call: Exact, ok: true, assigned: true, x86: true},
		"lr": {call: Return, ok: true, hint: true}, "ra": {call: Return, ok: true, hint: true},
		"x30": {call: Return, ok: true, hint: true, machine: elf.EM_AARCH64},
		"a0":  {call: Return, ok: true, hint: true, machine: elf.EM_XTENSA},

		"address":  {call: Exact, ok: true, assigned: true, with: "Faulting instruction address"},
		"location": {call: Either, ok: true, assigned: true, hint: true, with: "Location: 0x"},
		"entry":    {call: Exact, ok: true, assigned: true, hint: true, with: "Stack"},
		"call":     {call: Return, ok: true, assigned: true, hint: true, with: "last failed alloc"},
		"caller":   {call: Return, ok: true, assigned: true, hint: true, with: "last failed alloc"},
	}
})

func matchRegisters(r *Reader, l *Line, _ int) bool {
	b := l.Text
	if r.deaths.at > 0 && r.number-r.deaths.at < maxDump {
		return false // the kernel prints the registers of a process
	}
	if isGoFrame(b) {
		return false // Go has resolved the line, and its pc is a return address
	}
	for at := 0; at < len(b) && len(l.Frames) < maxRegisters; {
		if !isLetter(b[at]) {
			at++
			continue
		}
		end := at
		for end < len(b) && isWord(b[end]) {
			end++
		}
		reg := registerOf(b[at:end])
		at = end
		if !reg.ok || r.OnX86 && !reg.x86 {
			continue
		}
		value, next, ok := registerValue(b, end)
		if from := next - len("0x1234"); ok && hasAt(b, from, "0x") && isCut(b, from, next) {
			// AVR addresses have 16 bits; on other machines the number is cut off
			reg.machine, reg.hint = elf.EM_AVR, true
		}
		if !ok || reg.assigned && b[blanksAfter(b, end)] == '0' || reg.with != "" && !bytes.Contains(b, []byte(reg.with)) {
			continue
		}
		at = next
		l.register(r, value, reg)
	}
	// Zephyr on MIPS prints names after the values
	if named := bytes.TrimRight(b, " "); !r.OnX86 && bytes.HasSuffix(named, []byte("(ra)")) {
		at := len(named) - len("(ra)")
		if from := hexBefore(b, at); at-from == 8 || at-from == 16 {
			value, _, _ := hexAt(b, from)
			l.register(r, value, registerNames()["ra"])
		}
	}
	return len(l.Frames) > 0
}

type deviceFault struct {
	pc uint64
	at int64 // line of pc
}

// register adds a frame with the value of a register, unless the value cannot be a code address.
func (l *Line) register(r *Reader, value uint64, reg register) {
	if isExceptionReturn(value) || value == 0 {
		return
	}
	if reg.machine == elf.EM_XTENSA {
		value = value&^windowBits | codeRegion
	}
	if reg.call == Exact {
		r.device.pc, r.device.at = value, r.number
		r.open(windowESPRust, r.number) // an exception's backtrace may follow
	}
	// the first "ra" of Zephyr's call trace repeats the address of the fault
	if reg.call == Return && value == r.device.pc && r.number > r.device.at && r.number-r.device.at < maxDump {
		reg.call = Exact
	}
	f := l.address(value, reg.call)
	f.Optional, f.Machine = reg.hint, reg.machine
	r.ofKernel(f)
}

// isGoFrame reports whether b is the line of a Go frame with its file and line:
//
//	/src/main.go:19 +0x1a fp=0xc000062748 sp=0xc000062720 pc=0x47e59a
func isGoFrame(b []byte) bool {
	at := bytes.Index(b, []byte(" fp=0x"))
	if at < 0 {
		return false
	}
	for _, name := range []string{" fp=0x", " sp=0x", " pc=0x"} {
		if !hasAt(b, at, name) {
			return false
		}
		at = hexDigits(b, at+len(name))
	}
	return true
}

// maxRegisters bounds the registers that are read from a line. Known dumps have at most four with
// code addresses.
const maxRegisters = 8

// registerOf returns the register with this name, or the zero register. The name may have the
// prefix "stacked_". A name such as "r14/lr" is passed without "r14/".
func registerOf(name []byte) register {
	var lower [8]byte
	if len(name) < 2 || len(name) > len("stacked_pc") {
		return register{}
	}
	name = bytes.TrimPrefix(name, []byte("stacked_"))
	if len(name) > len(lower) {
		return register{}
	}
	for i, c := range name {
		if lower[i] = c; c-'A' < 26 {
			lower[i] |= 0x20
		}
	}
	return registerNames()[string(lower[:len(name)])]
}

// registerValue parses the value of a register whose name ends at the given offset. The value
// follows ":" or "=", and has eight or 16 digits or the prefix 0x. With the prefix it may also
// follow a blank.
func registerValue(b []byte, at int) (value uint64, end int, ok bool) {
	if hasAt(b, at, ")") {
		at++
	}
	if hasAt(b, at, "/x1=") { // RA/x1 in esp-backtrace
		at += len("/x1")
	}
	from := blanksAfter(b, at)
	assigned := from < len(b) && (b[from] == ':' || b[from] == '=')
	if assigned {
		from = blanksAfter(b, from+1)
	}
	if hasAt(b, from, "0x") {
		value, end, ok = hexAt(b, from+2)
		return value, end, ok && (assigned || from > at) && end-from > len("0x")+2 && !isWordAt(b, end) && (!isCut(b, from, end) || end-from == len("0x1234"))
	}
	if hasAt(b, from, "[<") { // Arm, as in Linux and U-Boot
		from += len("[<")
	}
	value, end, ok = hexAt(b, from)
	digits := end - from
	return value, end, ok && assigned && (digits == 8 || digits == 16) && !isWordAt(b, end)
}

// isCut reports whether a reset has cut off the number b[from:end], which has the prefix 0x. A
// whole number with a leading zero has 8 or 16 digits. On a device with code at 0, the remaining
// digits may be another code address.
func isCut(b []byte, from, end int) bool {
	from += len("0x")
	digits := end - from
	return digits > 0 && b[from] == '0' && digits != 8 && digits != 16
}

func isWordAt(b []byte, at int) bool { return at < len(b) && isWord(b[at]) }

// isExceptionReturn reports whether the value of a Cortex-M link register is not an address: it is
// EXC_RETURN, which encodes how an exception returns (also in Armv8-M), or the reset value.
func isExceptionReturn(value uint64) bool { return value >= 0xffffff80 && value <= 0xffffffff }

// Addresses of devices usually have 32 bits. On Xtensa with windowed registers, a return address
// has the window size in its two highest bits. In all code addresses, these bits are equal to
// codeRegion.
const (
	windowBits = 0xc0000000
	codeRegion = 0x40000000
)

// address adds a frame with a firmware address. The answer gets its own line, in the form of
// idf_monitor.
func (l *Line) address(value uint64, call Call) *Frame {
	f := l.frame()
	f.Kind, f.Value, f.Addr, f.Call = Runtime, value, value, call
	f.Below = fmt.Sprintf("--- 0x%08x: ", value)
	return f
}

// CmBacktrace and RT-Thread print lists of addresses for addr2line:
//
//	Show more call stack info by run: addr2line -e CmBacktrace.elf -afpiC 08000a60 08000141 0800313f
//	please use: addr2line -e rtthread.elf -a -f 0x0800313f 0x08000141
//
// CmBacktrace has subtracted 4 from each address except the first.
var addr2line = Dialect{
	Name: "addr2line", Who: "firmware: the addresses that CmBacktrace and RT-Thread list for addr2line",
	Needs:  "--image FILE, the firmware",
	Sample: "Show more call stack info by run: addr2line -e CmBacktrace.elf -afpiC 08000a60 08000141",
}

func matchAddr2line(_ *Reader, l *Line, _ int) bool {
	const mark = "addr2line "
	b := l.Text
	at := bytes.Index(b, []byte(mark))
	if at < 0 || bytes.Contains(b[at:], []byte(" at ")) { // addr2line's output, not its command
		return false
	}
	for at += len(mark); at < len(b) && len(l.Frames) < maxAddresses; {
		at = blanksAfter(b, at)
		end := at
		for end < len(b) && b[end] != ' ' && b[end] != '\t' {
			end++
		}
		digits := bytes.TrimPrefix(b[at:end], []byte("0x"))
		value, stop, ok := hexAt(digits, 0)
		prefixed := len(digits) < end-at
		cut := prefixed && isCut(b, at, end)
		at = end
		if !ok || stop != len(digits) || !prefixed && len(digits) != 8 || cut {
			if len(l.Frames) > 0 {
				break
			}
			continue
		}
		call := Return
		switch {
		case prefixed && len(l.Frames) == 0:
			call = Either
		case len(l.Frames) == 0:
			call = Exact
		case !prefixed:
			call = Adjusted
		}
		f := l.address(value, call)
		f.Number = len(l.Frames) - 1
	}
	return len(l.Frames) > 0
}

const maxAddresses = 256 // addresses in one list

// NuttX prints lists of addresses when it dumps the stacks of its tasks:
//
//	sched_dumpstack: backtrace| 1: 0x0800313f 0x08000141
//	sched_dumpstack: [ 1] [<0x0800313f>] up_assert+0x12/0x34
var nuttx = Dialect{
	Name: "nuttx", Who: "NuttX: the backtraces of tasks",
	Needs:  "--image FILE, the firmware",
	Sample: "sched_dumpstack: backtrace| 1: 0x0800313f 0x08000141",
}

func matchNuttX(_ *Reader, l *Line, _ int) bool {
	const mark = "backtrace|"
	b := l.Text
	at := bytes.Index(b, []byte(mark))
	if at < 0 {
		return false
	}
	_, at, ok := decimalAt(b, blanksAfter(b, at+len(mark)))
	return ok && hasAt(b, at, ":") && l.addresses(blanksAfter(b, at+1), Either)
}

// matchNuttXFrame matches a frame whose address is at the given offset, after "[<".
func matchNuttXFrame(_ *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, ">] ") || !endsWith(b, at, "] [<") {
		return false
	}
	number, open, ok := decimalBefore(b, at-len("] [<"))
	if open = blanksBefore(b, open); !ok || !endsWith(b, open, "[") {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, open-1
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Either
	l.edit(f, Edit{Span{len(b), len(b)}, " ", AtLine, ""})
	return true
}

// addresses adds a frame for each of the consecutive addresses from the given offset. It reports
// whether the line has any frames.
func (l *Line) addresses(at int, call Call) bool {
	b := l.Text
	for len(l.Frames) < maxAddresses {
		addr, end, ok := prefixedHex(b, at)
		if !ok || isWordAt(b, end) || isCut(b, at, end) {
			break
		}
		l.address(addr, call).Number = len(l.Frames) - 1
		at = blanksAfter(b, end)
	}
	return len(l.Frames) > 0
}
