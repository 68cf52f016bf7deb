package dialect

import "bytes"

// Fluent Bit prints the frames of libbacktrace in its own form:
//
//	#5  0x55c2d1a0b2c4      in  ???() at ???:0
//	#10 0x55c2d1a0b2c4      in  flb_start() at ???:0
//
// The address is from libbacktrace's backtrace_full: a return address minus one, or the exact
// address at which a signal has interrupted a function.

// matchFluentBit matches a frame without a file.
func matchFluentBit(r *Reader, l *Line, at int) bool {
	b := l.Text
	number, from, ok := decimalBefore(b, blanksBefore(b, at))
	if !ok || from < 1 || b[from-1] != '#' || !standsFree(b, from-1) {
		return false
	}
	addr, end, ok := prefixedHex(b, at)
	const blank, in, call, noPlace = " ", "in  ", "() at ", "???:0"
	name := blanksAfter(b, end)
	if !ok || addr < firstAddress || !hasAt(b, end, blank) || !hasAt(b, name, in) {
		return false
	}
	name += len(in)
	length := bytes.Index(b[name:], []byte(call+noPlace))
	place := name + length + len(call)
	if length < 1 || bytes.IndexByte(b[name:name+length], ' ') >= 0 || !onlyBlanks(b, place+len(noPlace)) {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, from-1
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Adjusted
	if function := b[name : name+length]; string(function) == "???" {
		l.edit(f, Edit{Span{name, name + length + len("()")}, "", Name, ""})
	} else {
		f.Symbol = Symbol{Name: string(function), Inside: true}
	}
	l.edit(f, Edit{Span{place, place + len(noPlace)}, "", AtLine, ""})
	return true
}
