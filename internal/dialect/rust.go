package dialect

import "bytes"

// With RUST_BACKTRACE=full, Rust prints the addresses of a backtrace, without their modules:
//
//	3:     0x55d0c0a013cb - <unknown>
//	4:     0x7f31c2a2724a - __libc_start_main
//	                             at ./csu/libc-start.c:360:3
//	5:     0x55d0c0a02c11 - ledger::settle::hb4f9496a9a3f4b05
//
// All addresses are return addresses. The next line has the file and line of a function, if known.
// Inlined functions have neither number nor address. Frame 5 has only the name from the symbol
// table: the program has no debug information.
var rust = Dialect{
	Name: "rust", Who: "panics of Rust programs with RUST_BACKTRACE=full",
	Needs:  "/proc/self/maps in the log, or --image FILE[@BASE]",
	Sample: "   3:     0x55d0c0a013cb - <unknown>",
}

// PlaceColumn is the number of columns from the start of a frame to a call's file on the next line.
const PlaceColumn = 31

func matchRust(r *Reader, l *Line, at int) bool {
	const dash, unknown = " - ", "<unknown>"
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	name, to := end+len(dash), len(bytes.TrimRight(b, " \t"))
	if !ok || addr == 0 || !hasAt(b, end, dash) || name >= to || b[name] == ' ' {
		return false
	}
	colon := blanksBefore(b, at) - 1
	if colon < 1 || b[colon] != ':' {
		return false
	}
	number, digits, ok := decimalBefore(b, colon)
	if !ok || !standsFree(b, digits) {
		return false
	}
	if wasm, named := ofWasmtime(b[name:to]); wasm {
		return !named && l.unread(digits, addr, ErrWasm)
	}
	f := l.frame()
	f.Number, f.Kind, f.Addr, f.Value, f.Call = number, Runtime, addr, addr, Return
	f.Start = max(blanksBefore(b, digits), digits-3) // the number has four columns
	if colon-f.Start > 4 {
		f.Start = colon - 4
	}
	f.Inline = InlineBelow
	if string(b[name:to]) == unknown {
		l.edit(f, Edit{Span{name, to}, "", Func, ""})
		return true
	}
	f.Symbol = Symbol{Name: string(b[name:to]), Inside: true}
	f.PlaceBelow = true
	l.edit(f, Edit{Span{name, to}, "", FuncAt, ""})
	return true
}
