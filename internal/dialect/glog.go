package dialect

import "bytes"

// The failure handlers of glog, Abseil and folly print addresses without their modules:
//
//	PC: @     0x55d0c0a013cb  (unknown)
//	    @     0x7f31c2a01154  (unknown)
//	    @     0x7f31c2a0117e  ledger::Book::close()
//	    @     0x7f31c2a01154         48  (unknown)
//	    @ 00007f31c2a01154 (unknown)
//
// Abseil prints the size of the frame between address and name, and folly pads the address with
// zeros. All addresses except the PC are return addresses. The frames of the handler and the
// trampoline precede the frame that the signal interrupted. For an address without a name, some
// builds of glog print (PATH+0xOFFSET), with the offset minus one.
var (
	glog = Dialect{
		Name: "glog", Who: "glog's failed checks and failure handler",
		Needs:  "/proc/self/maps in the log, or --image FILE[@BASE]",
		Sample: "    @     0x7f31c2a01154  (unknown)",
	}
	absl = Dialect{
		Name: "absl", Who: "Abseil's failure handler",
		Needs:  "/proc/self/maps in the log, or --image FILE[@BASE]",
		Sample: "    @     0x7f31c2a01154         48  (unknown)",
	}
	folly = Dialect{
		Name: "folly", Who: "folly's symbolizer: Meta's programs, fizz, proxygen",
		Needs:  "/proc/self/maps in the log, or --image FILE[@BASE]",
		Sample: "    @ 00007f31c2a01154 (unknown)",
	}
)

const (
	unknown    = "(unknown)"
	glogWidth  = 18 // columns of a 64-bit address, with its prefix
	stackWidth = 9  // columns of the size of a frame's stack
)

func matchGlog(r *Reader, l *Line, at int) bool {
	f, end := glogAddress(l, at)
	if f == nil {
		return false
	}
	return r.modules.failureName(l, f, end)
}

func matchAbsl(r *Reader, l *Line, at int) bool {
	f, end := glogAddress(l, at)
	if f == nil {
		return false
	}
	b := l.Text
	size := end + 2
	if !hasAt(b, end, "  ") || !hasAt(b, size+stackWidth, "  ") {
		return false
	}
	if number := blanksAfter(b, size); !hasAt(b, size, unknown) {
		if _, stop, ok := decimalAt(b, number); !ok || stop != size+stackWidth {
			return false
		}
	}
	return r.modules.failureName(l, f, size+stackWidth)
}

// glogAddress parses the text before the name, and returns the frame and the end of the address. f
// is nil if the line is not a frame.
func glogAddress(l *Line, at int) (f *Frame, end int) {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	mark := blanksBefore(b, at) - 1
	if !ok || addr == 0 || mark < 4 || b[mark] != '@' || end-(mark+len("@ ")) < glogWidth {
		return nil, 0
	}
	pc := endsWith(b, mark, "PC: ")
	if !pc && !endsWith(b, mark, "    ") {
		return nil, 0
	}
	f = l.frame()
	f.Kind, f.Addr, f.Value, f.Call, f.Start = Runtime, addr, addr, Return, mark-4
	if pc {
		f.Call = Exact
	}
	return f, end
}

// matchFolly matches a frame of folly whose "@" is at the given offset.
func matchFolly(r *Reader, l *Line, at int) bool {
	const width = 16 // digits of the address
	b := l.Text
	from := at + len("@ ")
	addr, end, ok := hexAt(b, from)
	if !ok || addr == 0 || end-from != width || !endsWith(b, at, "    ") {
		return false
	}
	f := l.frame()
	f.Kind, f.Addr, f.Value, f.Call, f.Start = Runtime, addr, addr, Return, at-4
	if hasAt(b, end, " (not found)") && onlyBlanks(b, end+len(" (not found)")) {
		l.edit(f, Edit{Span{end + 1, end + len(" (not found)")}, "", Name, ""})
		l.edit(f, Edit{Span{len(b), len(b)}, " ", AtLine, ""})
		return true
	}
	if !r.modules.failureName(l, f, end) {
		return false
	}
	f.PlaceBelow = f.Symbol.Name != ""
	return true
}

// failureName parses the name of f, from the given offset to the end of the line.
func (c *modules) failureName(l *Line, f *Frame, at int) bool {
	b := l.Text
	from, to := blanksAfter(b, at), len(bytes.TrimRight(b, " \t"))
	if from == at || from > at+2 || from >= to {
		return false
	}
	name := b[from:to]
	switch {
	case string(name) == unknown:
		l.edit(f, Edit{Span{from, to}, "", Name, ""})
		l.edit(f, Edit{Span{to, to}, " ", AtLine, ""})
		return true
	case name[0] == '(' && !bytes.HasPrefix(name, []byte("(anonymous namespace)")):
		m, ok := c.plus(b, from)
		if !ok || m.end != to {
			return false
		}
		f.Module, f.Kind, f.Value = m.module, Vaddr, m.offset+1
		l.edit(f, Edit{Span{from, to}, "", Name, ""})
		l.edit(f, Edit{Span{to, to}, " ", AtLine, ""})
		return true
	case isAnswered(name):
		return false
	}
	f.Symbol = Symbol{Name: string(name), Inside: true}
	l.after(f, to)
	return true
}

// isAnswered reports whether the end of a line looks like an appended answer: " f file:line" or
// "f+0xOFFSET".
func isAnswered(b []byte) bool {
	b = bytes.TrimRight(b, " \t)")
	end := len(b)
	for end > 0 && isDigit(b[end-1]) {
		end--
	}
	if end > 0 && end < len(b) && b[end-1] == ':' {
		return true
	}
	digits := hexBefore(b, len(b))
	return digits < len(b) && endsWith(b, digits, "+0x")
}
