package dialect

import "bytes"

// LLVM's tools, clang, MLIR and Swift print frames after "Stack dump:" when they crash. With
// llvm-symbolizer, but without debug files, they print:
//
//	 #4 0x00007f31c2a01154 (/opt/shop/libledger.so+0x1154)
//	#10 0x00007f31c2a011f0 ledger_audit (/opt/shop/libledger.so+0x11f0)
//
// Without llvm-symbolizer they print a decimal offset:
//
//	4  libledger.so 0x00007f31c2a01154
//	10 libledger.so 0x00007f31c2a011f0 ledger_audit + 22
//
// All addresses are return addresses, except after a signal. In the first form, the number in
// parentheses is an address in the file, with the same last three digits as the address in the
// process.
var llvm = Dialect{
	Name: "llvm", Who: "crashes of LLVM, clang, MLIR and Swift",
	Needs:  "the file at the path, a file of the same name in a --symbol-path folder or a system folder, or --image",
	Sample: " #4 0x00007f31c2a01154 (/opt/shop/libledger.so+0x1154)",
}

func matchLLVM(r *Reader, l *Line, at int) bool {
	b := l.Text
	if !isLong(b, at) {
		return false
	}
	h, ok := r.modules.hashFrame(b, at)
	if !ok || (h.addr-h.place.offset)%PageSize != 0 {
		return false
	}
	f := l.hashed(&h, Vaddr)
	f.Call = Return
	f.Inline = InlineFrames
	l.edit(f, Edit{h.name, "", Func, " "})
	l.edit(f, Edit{Span{h.open, h.place.end}, "", AtColumn, ""})
	return true
}

// A hashFrame is a frame "#4 0x7f31c2a01154 FUNCTION (MODULE+0xOFFSET)", with one blank after the
// address. Sanitizers print two blanks without a function, and "in" before a function.
type hashFrame struct {
	number int
	digits Span // the number of the frame
	addr   uint64
	name   Span // the function and the blank after it
	open   int  // offset of the "(" before the module
	place  place
}

// hashFrame parses the frame whose address begins at the given offset.
func (c *modules) hashFrame(b []byte, at int) (h hashFrame, ok bool) {
	if h.number, h.digits, ok = numberBefore(b, at); !ok {
		return h, false
	}
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, " ") || hasAt(b, end+1, " ") || hasAt(b, end+1, "in ") {
		return h, false
	}
	h.addr = addr
	if h.open = end + 1; !hasAt(b, h.open, "(") || c.lastModule(b, end) > h.open {
		h.open = c.lastModule(b, end)
	}
	h.name = Span{end + 1, h.open}
	h.place, ok = c.plus(b, h.open)
	return h, ok && h.place.id.IsZero() && onlyBlanks(b, h.place.end)
}

// hashed adds the frame h to l. kind is the meaning of the offset in h.
func (l *Line) hashed(h *hashFrame, kind Number) *Frame {
	f := l.frame()
	f.Number, f.Digits, f.Start = h.number, h.digits, h.digits.From-1
	f.Module, f.Kind, f.Value, f.Addr = h.place.module, kind, h.place.offset, h.addr
	return f
}

// matchLLVMNamed matches a frame that the producer has named. The frame gets no answer, but its
// number changes if earlier frames get inlined calls.
func matchLLVMNamed(r *Reader, l *Line, at int) bool {
	b := l.Text
	number, digits, ok := numberBefore(b, at)
	if !ok {
		return false
	}
	_, end, ok := prefixedHex(b, at)
	if !ok || end-at != len("0x")+16 || !hasAt(b, end, " ") || hasAt(b, end+1, " ") || hasAt(b, end+1, "(") || hasAt(b, end+1, "in ") {
		return false
	}
	if _, from, ok := decimalBefore(b, len(b)); !ok || from < end+3 || b[from-1] != ':' {
		return false
	}
	f := l.frame()
	f.Number, f.Digits, f.Start, f.Named = number, digits, digits.From-1, true
	return true
}

func beforeName(c byte) bool {
	return c == ' ' || c == '\t' || c == '/' || c == '(' || c == '[' || c == ':'
}

// matchLLVMPlain matches a frame with the name of its module.
func matchLLVMPlain(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || end-at != len("0x")+16 && end-at != len("0x")+8 {
		return false
	}
	to := blanksBefore(b, at)
	from := to
	for from > 0 && !beforeName(b[from-1]) {
		from--
	}
	digits := blanksBefore(b, from)
	number, start, ok := decimalBefore(b, digits)
	if !ok || from == to || digits == from || start > 0 && b[start-1] != ' ' && b[start-1] != '\t' {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, start
	f.Module, f.Kind, f.Value, f.Addr, f.Call = r.modules.name(b[from:to]), Runtime, addr, addr, Return
	stop := len(bytes.TrimRight(b, " \t\r"))
	if stop > end {
		const plus = " + "
		offset, digits, ok := decimalBefore(b, stop)
		if !ok || digits < end+len(" f + ") || !endsWith(b, digits, plus) || b[end] != ' ' {
			return false
		}
		f.Symbol = Symbol{Name: string(b[end+1 : digits-len(plus)]), Offset: int64(offset)}
		l.edit(f, Edit{Span{end + 1, stop}, "", FuncAt, ""})
	} else {
		l.edit(f, Edit{Span{stop, stop}, " ", Name, ""})
	}
	l.edit(f, Edit{Span{stop, stop}, " ", AtColumn, ""})
	return true
}

// programArguments reads the program's path from LLVM's list of activities:
//
//  0. Program arguments: /usr/lib/llvm-19/bin/clang -cc1 -triple x86_64-pc-linux-gnu
func programArguments(r *Reader, b []byte, at int) {
	b = b[at+len("Program arguments: "):]
	if i := bytes.IndexByte(b, ' '); i >= 0 {
		b = b[:i]
	}
	if len(b) > 1 && b[0] == '/' && len(b) <= maxPath {
		r.facts.AddModule(ModuleFact{Name: string(b), Main: true})
	}
}
