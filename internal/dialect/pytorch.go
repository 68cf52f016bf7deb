package dialect

import "bytes"

// PyTorch's library c10 prints frames with the offset in the symbol or, without a symbol, in the
// library:
//
//	frame #0: ledger::Book::close(int (*)(int), int) + 0x2e (0x7f31c2a0117e in /opt/shop/libledger.so)
//	frame #1: <unknown function> + 0x1154 (0x7f31c2a01154 in /opt/shop/libledger.so)
//
// All addresses are return addresses.
var pytorch = Dialect{
	Name: "pytorch", Who: "PyTorch: errors of c10 and at::",
	Needs:  "the file at the path, or --image",
	Sample: "frame #1: <unknown function> + 0x1154 (0x7f31c2a01154 in /opt/shop/libtorch_cpu.so)",
}

func matchPyTorch(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, " in ") || at < 2 || b[at-2] != ' ' {
		return false
	}
	close := bytes.LastIndexByte(b, ')')
	path := end + len(" in ")
	if close <= path || close-path > maxPath || !onlyBlanks(b, close+1) {
		return false
	}
	digits := hexBefore(b, at-2)
	offset, _, ok := hexAt(b[:at-2], digits)
	if !ok || offset>>62 != 0 || !endsWith(b, digits, " + 0x") {
		return false
	}
	to := digits - len(" + 0x")
	number, start, from, ok := numberedName(b[:to], "frame #", ": ")
	if !ok || from >= to {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, start
	f.Module, f.Addr, f.Call = r.modules.name(b[path:close]), addr, Return
	if name := b[from:to]; string(name) == "<unknown function>" {
		f.Kind, f.Value = BaseOffset, offset
	} else {
		f.Kind, f.Value = Runtime, addr
		f.Symbol = Symbol{Name: string(name), Offset: int64(offset)}
	}
	l.after(f, close+1)
	return true
}
