package dialect

import "bytes"

// C++ libraries print stack traces in several forms. Boost prints the path of the module if it
// finds no name. GCC's std::stacktrace prints the address at the end. backward-cpp prints the
// newest call last. cpptrace prints the path of the module instead of a source file:
//
//	 0# 0x000055D0C0A013CB in ./inventory
//	   1# ledger_audit at :0 [0x7f31c2a01168]
//	#3    Object "/opt/shop/libledger.so", at 0x7f31c2a01168, in ledger_audit
//	#2 0x00007f31c2a01168 in ledger_audit at /opt/shop/libledger.so
//
// Boost prints return addresses, and the other libraries return addresses minus one.
var (
	boost = Dialect{
		Name: "boost", Who: "Boost.Stacktrace",
		Needs:  "/proc/self/maps in the log, or --image FILE[@BASE], except for programs at fixed addresses",
		Sample: " 0# 0x000055D0C0A013CB in ./inventory",
	}
	stdTrace = Dialect{
		Name: "stdtrace", Who: "std::stacktrace of GCC",
		Needs:  "/proc/self/maps in the log, or --image FILE[@BASE]",
		Sample: "   1# ledger_audit at :0 [0x7f31c2a01168]",
	}
	backward = Dialect{
		Name: "backward", Who: "backward-cpp",
		Needs:  "the file at the path or --image, and either function names in the trace or maps in the log",
		Sample: `#3    Object "/opt/shop/libledger.so", at 0x7f31c2a01168, in ledger_audit`,
	}
	cpptrace = Dialect{
		Name: "cpptrace", Who: "cpptrace",
		Needs:  "the file at the path or --image, and either function names in the trace or maps in the log",
		Sample: "#2 0x00007f31c2a01168 in ledger_audit at /opt/shop/libledger.so",
	}
)

func matchBoost(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || addr == 0 || !hasAt(b, end, " in ") || !endsWith(b, at, "# ") {
		return false
	}
	number, start, ok := decimalBefore(b, at-len("# "))
	if !ok || start > 0 && b[start-1] != ' ' && b[start-1] != '\t' {
		return false
	}
	path, to := end+len(" in "), len(bytes.TrimRight(b, " \t"))
	if path >= to || to-path > maxPath || isAnswered(b[path:to]) {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, start
	f.Module, f.Kind, f.Addr, f.Value, f.Call = r.modules.name(b[path:to]), Runtime, addr, addr, Return
	l.edit(f, Edit{Span{at, end}, "", Name, ""})
	l.edit(f, Edit{Span{end, to}, " at ", AtLine, ""})
	return true
}

func matchStdTrace(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || addr == 0 || !hasAt(b, end, "]") || !onlyBlanks(b, end+1) || at < 2 || b[at-2] != ' ' {
		return false
	}
	hash := bytes.Index(b[:at], []byte("# "))
	if hash < 1 {
		return false
	}
	number, digits, ok := decimalBefore(b, hash)
	if !ok || digits > 0 && b[digits-1] != ' ' && b[digits-1] != '\t' {
		return false
	}
	from, to := hash+len("# "), at-2
	if from > to {
		return false
	}
	name := bytes.TrimSpace(b[from:to])
	name = bytes.TrimSpace(bytes.TrimSuffix(name, []byte("at :0")))
	if isAnswered(name) {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, digits
	f.Kind, f.Addr, f.Value, f.Call = Runtime, addr, addr, Adjusted
	if len(name) > 0 && string(name) != "<unknown>" {
		f.Symbol = Symbol{Name: string(name), Inside: true}
	}
	l.edit(f, Edit{Span{from, to}, "", Func, ""})
	l.edit(f, Edit{Span{to, to}, " at ", AtLine, ""})
	return true
}

func matchBackward(r *Reader, l *Line, at int) bool {
	const object, before, in = ` Object "`, `", at `, ", in "
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || addr == 0 || !endsWith(b, at, before) || !hasAt(b, end, in) {
		return false
	}
	number, start, from, ok := numberedName(b[:at], "#", " ")
	if !ok {
		return false
	}
	from = blanksAfter(b, from) - 1
	if !hasAt(b, from, object) {
		return false
	}
	path := b[from+len(object) : max(from+len(object), at-len(before))]
	if len(path) == 0 || len(path) > maxPath || path[0] == '[' {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, start
	f.Module, f.Kind, f.Addr, f.Value, f.Call = r.modules.name(path), Runtime, addr, addr, Adjusted
	f.Inline = InlinedByBefore
	end += len(in)
	to := max(end, len(bytes.TrimRight(b, " \t")))
	if name := b[end:to]; len(name) == 0 {
		l.edit(f, Edit{Span{end, end}, "", Name, ""})
		l.edit(f, Edit{Span{end, end}, " ", AtLine, ""})
		return true
	} else if isAnswered(name) {
		return false
	} else {
		f.Symbol = Symbol{Name: string(name), Inside: true}
	}
	l.after(f, to)
	return true
}

func matchCpptrace(r *Reader, l *Line, at int) bool {
	b := l.Text
	number, digits, ok := numberBefore(b, at)
	if !ok {
		return false
	}
	addr, end, ok := prefixedHex(b, at)
	if !ok || addr == 0 || !hasAt(b, end, " ") {
		return false
	}
	to := len(bytes.TrimRight(b, " \t"))
	place := bytes.LastIndex(b[end:to], []byte(" at /"))
	if place < 0 || isAnswered(b[end:to]) {
		return false
	}
	place += end
	path := b[place+len(" at ") : to]
	f := l.frame()
	f.Number, f.Start = number, digits.From-1
	f.Kind, f.Addr, f.Value, f.Call = Runtime, addr, addr, Adjusted
	f.Module = r.modules.name(path)
	if hasAt(b, end, " in ") && place > end+len(" in ") {
		f.Symbol = Symbol{Name: string(b[end+len(" in ") : place]), Inside: true}
	} else if place != end {
		return false
	}
	l.edit(f, Edit{Span{end, place}, " in ", Func, ""})
	l.edit(f, Edit{Span{place, to}, " at ", AtColumn, ""})
	return true
}
