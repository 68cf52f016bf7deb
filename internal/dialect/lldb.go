package dialect

import "bytes"

// lldb's bt prints a frame without debug information in one of these forms:
//
//	frame #2: 0x00007ffff7fbc14d libledger.so`ledger_audit + 20
//	frame #5: 0x0000555555555142 inventory`___lldb_unnamed_symbol11 + 9
//	frame #6: 0x0000555555555153 inventory
//	frame #7: 0x00007ffff7fc0000
//
// Frame 0 has the address of an instruction, and other frames a return address. The name of a
// module has no folder; "image list" shows its path, build ID and base:
//
//	[  1] B7C73BDB-477C-7D38-1A1F-7AE0383F886B-3AF92826 0x00007ffff7fbb000 /opt/shop/libledger.so
var lldb = Dialect{
	Name: "lldb", Who: "lldb's bt",
	Needs:  "the output of image list after the trace, or library functions named in it; --image NAME=FILE for files in other folders",
	Sample: "    frame #2: 0x00007f31c2a01154 libledger.so`ledger_audit + 20",
}

func matchLLDB(r *Reader, l *Line, at int) bool {
	const mark = "frame #"
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	number, digits, ok2 := decimalBefore(b, at-len(": "))
	start := digits - len(mark)
	if !ok || !ok2 || addr < firstAddress || !endsWith(b, at, ": ") || !endsWith(b, digits, mark) || !standsFree(b, start) {
		return false
	}
	to := len(bytes.TrimRight(b, " \t"))
	f := l.frame()
	f.Number, f.Start = number, start
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Return
	if number == 0 {
		f.Call = Exact
	}
	if end >= to {
		l.after(f, to)
		return true
	}
	from := end + len(" ")
	if !hasAt(b, end, " ") || !r.lldbModule(f, b[from:to]) {
		return false
	}
	name := Span{from + len(f.Module), to}
	before := "`"
	if name.From < to {
		name.From++
		before = ""
		if !f.lldbSymbol(b[name.From:to]) {
			return false
		}
	}
	part := Spaced
	if f.Symbol.Name != "" {
		part = FuncAt
	}
	l.edit(f, Edit{name, before, part, ""})
	l.edit(f, Edit{Span{to, to}, " at ", AtColumn, ""})
	return true
}

// lldbModule sets the module of f from the text after its address. It returns false if the text
// does not begin with a module.
func (r *Reader) lldbModule(f *Frame, b []byte) bool {
	module, _, _ := bytes.Cut(b, []byte{'`'})
	if len(module) == 0 || len(module) > maxPath || bytes.ContainsAny(module, " \t:") {
		return false
	}
	f.Module = r.modules.name(module)
	if !bytes.Contains(module, []byte(".so")) {
		f.Usual = PlainBase
	}
	return true
}

// lldbSymbol sets the symbol of f from the text after its module: a function, and perhaps a
// distance. It ignores LLDB's own names for nameless functions. It returns false for other text,
// for text with a line number, and for an inlined call.
func (f *Frame) lldbSymbol(b []byte) bool {
	if _, digits, ok := decimalBefore(b, len(b)); ok && digits > 0 && b[digits-1] == ':' || len(b) == 0 {
		return false
	}
	if bytes.Contains(b, []byte("[inlined]")) {
		return false
	}
	name, offset := b, 0
	if plus := bytes.LastIndex(b, []byte(" + ")); plus > 0 {
		n, end, ok := decimalAt(b, plus+len(" + "))
		if !ok || end != len(b) {
			return false
		}
		name, offset = b[:plus], n
	}
	if !bytes.HasPrefix(name, []byte("___lldb_unnamed_symbol")) {
		f.Symbol = Symbol{Name: string(name), Offset: int64(offset)}
	}
	return true
}

func lldbImage(r *Reader, l *Line, at int) bool {
	b := l.Text
	base, end, ok := prefixedHex(b, at)
	from := bytes.LastIndexByte(b[:at-1], ' ') + 1
	index, open, ok2 := decimalBefore(b, from-len("] "))
	open = blanksBefore(b, max(open, 0))
	if !ok || !ok2 || !endsWith(b, from, "] ") || !endsWith(b, open, "[") || base%PageSize != 0 {
		return false
	}
	id, ok := r.modules.id(bytes.ReplaceAll(b[from:at-1], []byte("-"), nil))
	path := bytes.TrimSpace(b[end:])
	if !ok || len(path) == 0 || path[0] != '/' || len(path) > maxPath {
		return false
	}
	r.facts.touch(r.number)
	r.facts.AddModule(ModuleFact{Name: string(path), ID: id, Base: base, HasBase: true, Main: index == 0})
	return true
}
