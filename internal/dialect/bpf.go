package dialect

import "bytes"

// bpftrace in its mode perf prints user-space stacks as
//
//	7f31c2a01154 ledger_audit+22 (/opt/shop/libledger.so)
//	55d0c0a013cb 0x55d0c0a013cb ([unknown])
//	55d0c0a013cb 0x55d0c0a013cb (/opt/shop/inventory)
//
// and the bcc tools that print addresses print them as
//
//	0x00007f31c2a01154	ledger_audit+0x16 [libledger.so]
//	0x000055d0c0a013cb	[unknown] [inventory]
//
// A stack's first address is exact, or follows a system call instruction; the others are return
// addresses. Names are from the symbol table, so an answer adds only a file and line.
var bpf = Dialect{
	Name: "bpf", Who: "bpftrace: ustack(perf); bcc's tools that print addresses",
	Needs:  "the file at the path, and one of its functions named in a frame; or --image FILE@BASE",
	Sample: "\t7f31c2a01154 ledger_audit+22 (/opt/shop/libledger.so)",
}

func matchBPFtrace(r *Reader, l *Line, at int) bool {
	b := l.Text
	to := len(bytes.TrimRight(b, " \t"))
	offset, digits, ok := decimalBefore(b, at)
	if !ok || digits < 2 || b[digits-1] != '+' || to-at > maxPath || !endsWith(b, to, ")") {
		return false
	}
	from := blanksAfter(b, 0)
	addr, end, ok := hexAt(b, from)
	if !ok || from == 0 || addr < firstAddress || !hasAt(b, end, " ") || end+1 >= digits-1 {
		return false
	}
	path := b[at+len(" (") : to-1]
	f := l.frame()
	f.Start, f.Kind, f.Value, f.Addr = from, Runtime, addr, addr
	path, f.Deleted = bytes.CutSuffix(path, []byte(" (deleted)"))
	f.Module = r.modules.name(path)
	f.Symbol = Symbol{Name: string(b[end+1 : digits-1]), Offset: int64(offset)}
	f.Call = r.bpfCall(offset == 0)
	l.edit(f, Edit{Span{to, to}, " ", AtLine, ""})
	return true
}

// matchBPFUnknown matches a frame of bpftrace without a name, whose second address is at the given
// offset.
func matchBPFUnknown(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	from := blanksAfter(b, 0)
	first, space, _ := hexAt(b, from)
	to := len(bytes.TrimRight(b, " \t"))
	if !ok || from == 0 || space != at-1 || first != addr || addr < firstAddress || !hasAt(b, end, " (") || !endsWith(b, to, ")") || to-end > maxPath {
		return false
	}
	f := l.frame()
	switch module := b[end+len(" (") : to-1]; {
	case len(module) > 0 && module[0] == '/':
		module, f.Deleted = bytes.CutSuffix(module, []byte(" (deleted)"))
		f.Module = r.modules.name(module)
	case string(module) != "[unknown]":
		return false
	}
	f.Start, f.Kind, f.Value, f.Addr = from, Runtime, addr, addr
	f.Call = r.bpfCall(false)
	l.edit(f, Edit{Span{at, end}, "", Name, ""})
	l.edit(f, Edit{Span{to, to}, " ", AtLine, ""})
	return true
}

func matchBCC(r *Reader, l *Line, at int) bool {
	const width, unknown = len("0x") + 16, "[unknown]"
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	to := len(bytes.TrimRight(b, " \t"))
	name := blanksAfter(b, end)
	if !ok || end-at != width || addr < firstAddress || blanksAfter(b, 0) != at || !endsWith(b, to, "]") || name == end {
		return false
	}
	open := bytes.LastIndex(b[:to], []byte(" ["))
	if open < name || to-open > maxPath || open+len(" [") == to-1 {
		return false
	}
	f := l.frame()
	f.Start, f.Kind, f.Value, f.Addr = at, Runtime, addr, addr
	f.Module = r.modules.name(b[open+len(" [") : to-1])
	switch symbol, offset, ok := offsetAtEnd(b[name:open]); {
	case string(b[name:open]) == unknown:
		l.edit(f, Edit{Span{name, open}, "", Name, ""})
	case !ok || len(symbol) == 0:
		return false
	default:
		f.Symbol = Symbol{Name: string(symbol), Offset: offset}
	}
	f.Call = r.bpfCall(f.Symbol.Name != "" && f.Symbol.Offset == 0)
	l.edit(f, Edit{Span{to, to}, " ", AtLine, ""})
	return true
}

// bpfCall returns the kind of a frame's address: Exact if entry is set, which means that a function
// begins at the address. Otherwise it is Return if the line follows another frame, and System if
// not.
func (r *Reader) bpfCall(entry bool) Call {
	switch {
	case entry:
		return Exact
	case r.follows(bpfFrame):
		return Return
	}
	return System
}

func bpfFrame(b []byte) bool {
	from := blanksAfter(b, 0)
	if hasAt(b, from, "0x") {
		from += len("0x")
	}
	end := hexDigits(b, from)
	return end > from+8 && blanksAfter(b, end) > end
}
