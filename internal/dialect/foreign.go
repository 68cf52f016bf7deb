package dialect

import (
	"bytes"
	"errors"
)

// Frames in modules that are not ELF files. They are matched only to report why they stay
// unresolved:
//
//	1   inventory                     	0x000000010f2a3f1c 0x10f2a0000 + 16156
//	    +     2557 ???  (in inventory)  load address 0x10f2a0000 + 0x3f1c  [0x10f2a3f1c]
//	000000d5`f86ff8a8 00007ff6`1c2b1034 inventory+0x1034
//	Fault offset: 0x0000000000001034
//	    at wasm://wasm/8d3f5a6e:wasm-function[33]:0x5d
var foreign = Dialect{
	Name: "foreign", Who: "macOS, iOS, Windows and WebAssembly",
	Needs:  "another program: --explain names it",
	Sample: "1   inventory                           0x000000010f2a3f1c 0x10f2a0000 + 16156",
}

// Reasons why frames in Mach-O, PE and WebAssembly modules are not located.
var (
	ErrMachO = errors.New("the module is a Mach-O file of macOS or iOS, which symfilter does not read; atos -o FILE -l BASE ADDRESS resolves the address")
	ErrPE    = errors.New("the module is a PE file of Windows, which symfilter does not read; with its PDB file, a Windows debugger or llvm-symbolizer --obj=FILE resolves the address")
	ErrWasm  = errors.New("the module is WebAssembly, which symfilter does not read; llvm-symbolizer --obj=FILE.wasm resolves offsets in it")
)

// ErrNoFile is the reason why a frame is not located if no file has its code.
var ErrNoFile = errors.New("no file has the code: the program generated it, or unloaded its library before the report; keep the library loaded (RTLD_NODELETE) to get its names")

// unread adds a frame that is never located, and sets its field Unread to the reason why.
func (l *Line) unread(start int, addr uint64, why error) bool {
	f := l.frame()
	f.Unread, f.Start, f.Kind, f.Addr, f.Value = why, start, Runtime, addr, addr
	return true
}

// matchCrashReport matches a frame in a macOS crash report. The load address is at the given
// offset, after the frame's address and before the distance between the two.
func matchCrashReport(r *Reader, l *Line, at int) bool {
	b := l.Text
	base, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, " + ") {
		return false
	}
	n, end, ok := decimalAt(b, end+3)
	if !ok || !onlyBlanks(b, end) {
		return false
	}
	second := at
	at = hexBefore(b, second-1) - len("0x")
	addr, end, ok := prefixedHex(b, max(at, 0))
	if at <= 0 || !ok || end != second-1 || end < at+len("0x")+8 || base+uint64(n) != addr {
		return false
	}
	to := blanksBefore(b, at)
	from := bytes.LastIndexAny(b[:to], " \t") + 1
	_, start, ok := decimalBefore(b, blanksBefore(b, from))
	if !ok || from == to || from == 0 || !standsFree(b, start) {
		return false
	}
	l.unread(start, addr, ErrMachO)
	l.Frames[0].Module = r.modules.name(b[from:to])
	return true
}

// matchMacSample matches a frame of macOS's sample or spindump without a function's name. The load
// address is at the given offset.
func matchMacSample(r *Reader, l *Line, at int) bool {
	b := l.Text
	const load = ")  load address "
	if !endsWith(b, at, load) {
		return false
	}
	in, close := bytes.LastIndex(b[:at], []byte("???  (in ")), at-len(load)
	_, end, ok := prefixedHex(b, at)
	if in < 0 || !ok || !hasAt(b, end, " + 0x") {
		return false
	}
	offset, _, ok := hexAt(b, end+5)
	l.unread(in, offset, ErrMachO)
	l.Frames[0].Module = r.modules.name(b[in+len("???  (in ") : close])
	return ok
}

// matchWinDbg matches a frame of WinDbg without a function, such as "00007ff6`1c2b1034
// ledger+0x1034". The offset in the module begins at l.Text[at].
func matchWinDbg(r *Reader, l *Line, at int) bool {
	b := l.Text
	offset, end, ok := prefixedHex(b, at)
	from := bytes.LastIndexByte(b[:at], ' ') + 1
	if !ok || b[at-1] != '+' || !onlyBlanks(b, end) || from == at-1 || from < 18 || bytes.IndexByte(b[from:at], '!') >= 0 {
		return false
	}
	tick := from - 10 // "00007ff6`1c2b1034 "
	if b[tick] != '`' || hexBefore(b, tick) != tick-8 || hexDigits(b, tick+1) != from-1 {
		return false
	}
	l.unread(tick-8, offset, ErrPE)
	l.Frames[0].Module = r.modules.name(b[from : at-1])
	return true
}

// matchFaultOffset matches the line of the Windows event log whose fault offset begins at the given
// index.
func matchFaultOffset(_ *Reader, l *Line, at int) bool {
	const mark = "Fault offset: "
	if !endsWith(l.Text, at, mark) {
		return false
	}
	offset, end, ok := prefixedHex(l.Text, at)
	return ok && onlyBlanks(l.Text, end) && l.unread(at-len(mark), offset, ErrPE)
}

// ofWasmtime reports whether name, from a frame in Rust's form, is wasmtime's text for a module and
// a function. Examples are ledger.wasm!settle and <unknown>!<wasm function 42>. named is set if the
// function has a name.
func ofWasmtime(name []byte) (is, named bool) {
	module, function, _ := bytes.Cut(name, []byte("!"))
	number := bytes.HasPrefix(function, []byte("<wasm function "))
	return number || len(function) > 0 && (string(module) == "<unknown>" || bytes.HasSuffix(module, []byte(".wasm"))), !number
}

// matchWasm matches a nameless function of WebAssembly, whose offset in the module begins at the
// given index of the line.
func matchWasm(_ *Reader, l *Line, at int) bool {
	b := l.Text
	if !endsWith(b, at, "]:") {
		return false
	}
	offset, end, ok := prefixedHex(b, at)
	if !ok || !onlyBlanks(b, end) && !hasAt(b, end, ")") {
		return false
	}
	const mark = "wasm-function["
	_, start, ok := decimalBefore(b, at-2)
	return ok && endsWith(b, start, mark) && l.unread(start-len(mark), offset, ErrWasm)
}
