package dialect

import "bytes"

// Call traces of Xen, on x86 and Arm:
//
//	(XEN) RIP:    e008:[<ffff82d040201234>] vmx.c#resume+0x12/0x34
//	(XEN)    [<ffff82d040201234>] R vmx.c#resume+0x12/0x34
//	(XEN)    [<ffff82d040205678>] F domain.c#idle_loop+0x56/0x78
//	(XEN)    [<00000a0000212345>] traps.c#do_trap+0x12/0x34 (PC)
//
// The addresses are addresses in the ELF file, because Xen is loaded at its link address. R and PC
// mark an instruction; other addresses are return addresses. If several files have a function of
// the same name, the name of the source file precedes it.
var xen = Dialect{
	Name: "xen", Who: "Xen: the hypervisor's call traces",
	Needs:  "--image xen-syms, the file of this build",
	Sample: "(XEN)    [<ffff82d040205678>] F domain.c#idle_loop+0x56/0x78",
}

// matchXen matches a frame whose offset in its function begins at the given index of the line.
func matchXen(r *Reader, l *Line, at int) bool {
	b := l.Text
	const mark = "(XEN)"
	from := bytes.LastIndexByte(b[:at], ' ') + 1
	if from < 2 || bytes.IndexByte([]byte("]RFS"), b[from-2]) < 0 {
		return false // usually a frame of Linux
	}
	if prefix := bytes.Index(b[:from], []byte(mark)); prefix < 0 || !standsFree(b, prefix) {
		return false
	}
	offset, slash, ok1 := prefixedHex(b, at)
	if !hasAt(b, slash, "/") {
		return false
	}
	size, end, ok2 := prefixedHex(b, slash+1)
	if !ok1 || !ok2 || offset>>62 != 0 || b[at-1] != '+' || at-1 == from {
		return false
	}
	// a letter may be between the address in brackets, which ends at close, and the name
	close := from - 1
	exact, letter := false, false
	if close > 2 && b[close-2] == ' ' && bytes.IndexByte([]byte("RFS"), b[close-1]) >= 0 {
		exact, letter = b[close-1] == 'R', true
		close -= 2
	}
	addr, open, ok := bracketed(b, close)
	if !ok {
		return false
	}
	switch {
	case onlyBlanks(b, end):
	case letter:
		return false
	case hasAt(b, end, " (PC)") && onlyBlanks(b, end+5):
		exact, end = true, end+5
	case hasAt(b, end, " (LR)") && onlyBlanks(b, end+5):
		end += 5
	default:
		return false
	}
	name := b[from : at-1]
	if i := bytes.IndexByte(name, '#'); i >= 0 {
		name = name[i+1:]
	}
	f := l.frame()
	f.Module = "xen-syms"
	f.Addr, f.Kind, f.Value, f.Call = addr, Runtime, addr, Return
	if exact || bytes.Contains(b[:open], []byte("RIP:")) {
		f.Call = Exact
	}
	f.Symbol = Symbol{Name: string(name), Offset: int64(offset), Size: size}
	f.Start = open
	f.Inline = InlineMarked
	l.edit(f, Edit{Span{end, end}, " ", AtLine, ""})
	return true
}

// bracketed parses an address such as "[<ffff82d040201234>]" at the end of b[:end], and returns the
// offset of its first bracket.
func bracketed(b []byte, end int) (addr uint64, start int, ok bool) {
	if !endsWith(b, end, ">]") {
		return 0, 0, false
	}
	digits := hexBefore(b, end-2)
	if !endsWith(b, digits, "[<") {
		return 0, 0, false
	}
	addr, last, ok := hexAt(b, digits)
	return addr, digits - 2, ok && last == end-2
}
