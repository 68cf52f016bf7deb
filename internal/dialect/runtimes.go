package dialect

import "bytes"

// Crash reports of Ruby, Xorg, Julia, gfortran, and Go with cgo.
//
// Ruby prints frames as glibc does. A frame with a file but no symbol is:
//
//	/usr/lib/libruby-3.1.so.3.1(0x7f31c2a01154) [0x7f31c2a01154]
//	/usr/lib/libc.so.6(0x2724a) [0x7f31c2a0124a]
//	ruby(0x55d0c0a0110b) [0x55d0c0a0110b]
//
// The first number is the offset from the load base if Ruby has found debug information for the
// file, or the address. The executable has the name by which it was called. The maps follow; they
// may list a library twice, as code and, for its debug information, as data. Xorg prints the
// closest symbol before the address, at any distance:
//
//	(EE) 3: /usr/lib/xorg/Xorg (OsLookupColor+0x139) [0x55d0c0a013cb]
//	(EE) 4: /opt/shop/libledger.so (?+0x0) [0x7f31c2a01154]
//
// Julia and gfortran (libbacktrace) print a return address minus one:
//
//	unknown function (ip: 0x7f31c2a01153) at /opt/shop/libledger.so
//	#3  0x7f31c2a01153 in ???
//
// Go prints its own frames with names. A C function interrupted by a signal is only an address:
//
//	PC=0x4979b2 m=0 sigcode=1 addr=0x10
var (
	ruby = Dialect{
		Name: "ruby", Who: "Ruby: the C level backtrace in a [BUG] report",
		Needs:  "the memory map that Ruby prints after the backtrace",
		Sample: "/usr/lib/libruby-3.1.so.3.1(0x7f31c2a01154) [0x7f31c2a01154]",
	}
	xorg = Dialect{
		Name: "xorg", Who: "Xorg",
		Needs:  "the file at the path, and a symbol in one of its frames",
		Sample: "(EE) 3: /usr/lib/xorg/Xorg (OsLookupColor+0x139) [0x55d0c0a013cb]",
	}
	julia = Dialect{
		Name: "julia", Who: "Julia: frames of libraries without debug information",
		Needs:  "the file at the path, and either a map of this file or several of its frames",
		Sample: "unknown function (ip: 0x7f31c2a01153) at /opt/shop/libledger.so",
	}
	gfortran = Dialect{
		Name: "gfortran", Who: "gfortran, Fluent Bit, and other programs with GCC's libbacktrace",
		Needs:  "--image FILE[@BASE]",
		Sample: "#3  0x7f31c2a01153 in ???",
	}
	cgo = Dialect{
		Name: "cgo", Who: "Go: a signal in a C function",
		Needs:  "--image FILE",
		Sample: "PC=0x4979b2 m=0 sigcode=1 addr=0x10",
	}
)

// rubyLines bounds the lines from the first line of a report to the maps. Between them is a line
// for each loaded file of Ruby code, several thousand in large programs.
const rubyLines = 8192

func matchRuby(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, "]") || !onlyBlanks(b, end+1) || !endsWith(b, at, ") [") {
		return false
	}
	close := at - len(") [")
	open := hexBefore(b, close) - len("(0x")
	if open < 1 || !hasAt(b, open, "(0x") {
		return false
	}
	number, _, ok := hexAt(b, open+len("(0x"))
	from := pathBefore(b, open)
	if !ok || number > addr || (addr-number)%PageSize != 0 || from == open || open-from > maxPath {
		return false
	}
	if !isPath(b[from:open]) {
		if !r.inTrace() {
			r.readPast()
		}
		if !r.inTrace() || !isWord(b[open-1]) {
			return false
		}
	}
	f := l.frame()
	f.Module, f.Kind, f.Value, f.Addr, f.Call = r.modules.name(b[from:open]), Runtime, addr, addr, Return
	if number != addr {
		f.Kind, f.Value = BaseOffset, number
	}
	f.Start = from
	l.after(f, end+1)
	return true
}

func matchXorg(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, "]") || !onlyBlanks(b, end+1) || !endsWith(b, at, ") [") {
		return false
	}
	close := at - len(") [")
	open := openingOf(b, close)
	if open < 2 || b[open-1] != ' ' {
		return false
	}
	path := open - 1
	from := bytes.LastIndex(b[:path], []byte(": ")) + 2
	if number, digits, ok := decimalBefore(b, from-2); from < 2 || !ok || digits < 1 || b[digits-1] != ' ' || path-from > maxPath || from >= path {
		return false
	} else if !isPath(b[from:path]) && string(b[from:path]) != "?" {
		return false
	} else {
		f := l.frame()
		f.Number, f.Start = number, digits
		f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Return
		if b[from] != '?' {
			f.Module = r.modules.name(b[from:path])
		}
		name, offset, ok := offsetAtEnd(b[open+1 : close])
		if !ok {
			return false
		}
		if len(name) > 0 && string(name) != "?" {
			f.Symbol = Symbol{Name: string(name), Offset: offset}
		}
		l.after(f, end+1)
	}
	return true
}

func matchJulia(r *Reader, l *Line, at int) bool {
	b := l.Text
	const before = "unknown function (ip: "
	start := at - len(before)
	if !hasAt(b, start, before) || !standsFree(b, start) {
		return false
	}
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, ")") {
		return false
	}
	end++
	f := l.frame()
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Adjusted
	f.Start = start
	rest := bytes.TrimRight(b[end:], " \t")
	if path, ok := bytes.CutPrefix(rest, []byte(" at ")); ok && len(path) <= maxPath {
		if len(path) == 0 || !isPath(path) {
			return false
		}
		f.Module = r.modules.name(path)
	} else if len(rest) > 0 {
		return false
	}
	name := Span{start, start + len("unknown function")}
	l.edit(f, Edit{name, "", Name, ""})
	l.edit(f, Edit{Span{end + len(rest), end + len(rest)}, " ", AtLine, ""})
	return true
}

// faultFrame is the number of the faulting frame in gfortran's traces. Two frames of the library
// and the signal's frame precede it.
const faultFrame = 3

func matchGfortran(r *Reader, l *Line, at int) bool {
	b := l.Text
	blanks := blanksBefore(b, at)
	number, from, ok := decimalBefore(b, blanks)
	if !ok || at-blanks > 2 || from < 1 || b[from-1] != '#' || !standsFree(b, from-1) {
		return false
	}
	addr, end, ok := prefixedHex(b, at)
	const in, unknown = " in ", "???"
	if !ok || !hasAt(b, end, in+unknown) || !onlyBlanks(b, end+len(in+unknown)) || addr == 1<<64-1 {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, from-1
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Adjusted
	if !r.inTrace() {
		r.readPast()
	}
	if number == faultFrame && r.opened()&windowFortran != 0 {
		f.Call = Exact
	}
	name := Span{end + len(in), end + len(in+unknown)}
	l.edit(f, Edit{name, "", Name, ""})
	l.edit(f, Edit{Span{name.To, name.To}, " at ", AtLine, ""})
	return true
}

// matchCgo matches the line with a signal's address, whose "C=0" is at the given offset.
func matchCgo(r *Reader, l *Line, at int) bool {
	b := l.Text
	start := at - 1
	if !hasAt(b, start, "PC=0x") || !standsFree(b, start) {
		return false
	}
	addr, end, ok := prefixedHex(b, start+len("PC="))
	if !ok || !hasAt(b, end, " m=") {
		return false
	}
	rest := end + len(" m=")
	if hasAt(b, rest, "-") {
		rest++
	}
	_, rest, ok = decimalAt(b, rest)
	if !ok || !hasAt(b, rest, " sigcode=") {
		return false
	}
	r.goSignal = addr
	r.open(windowGo, r.number)
	// Other values may follow. A name after them is symfilter's answer from an earlier run: then no
	// other grammar may match the line.
	for _, word := range bytes.Fields(b[rest:]) {
		if bytes.IndexByte(word, '=') < 0 {
			return true
		}
	}
	f := l.frame()
	f.Number, f.Start = 0, start
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Exact
	l.after(f, len(bytes.TrimRight(b, " \t")))
	return true
}

// matchCgoFrame matches a frame found by a program's own unwinder for C:
//
//	non-Go function
//		pc=0x4979b2
func matchCgoFrame(r *Reader, l *Line, at int) bool {
	b := l.Text
	start := at - len("pc=")
	if !hasAt(b, start, "pc=") || start > 0 && b[start-1] != '\t' {
		return false
	}
	addr, end, ok := prefixedHex(b, at)
	if !ok || !onlyBlanks(b, end) {
		return ok && b[end] == ' ' // symfilter's answer from an earlier run may follow
	}
	f := l.frame()
	f.Kind, f.Value, f.Addr, f.Call, f.Start = Runtime, addr, addr, Return, start
	if addr == r.goSignal {
		f.Call = Exact
	}
	l.after(f, end)
	return true
}
