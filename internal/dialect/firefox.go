package dialect

import "bytes"

// Firefox, Thunderbird and other programs with Mozilla's code print frames as
//
//	#01: ???[/usr/lib/firefox/libxul.so +0x1154]
//	#02: ledger::Book::close() (/opt/shop/libledger.so + 0x11f0)
//
// The hexadecimal number is the offset of a return address from the base of the module.
var firefox = Dialect{
	Name: "firefox", Who: "Firefox, Thunderbird",
	Needs:  "the file at the path, or --image",
	Sample: "#02: ???[/opt/shop/libledger.so +0x1154]",
}

func matchFirefox(r *Reader, l *Line, at int) bool {
	b := l.Text
	offset, end, ok := prefixedHex(b, at)
	if !ok || end == len(b) || !onlyBlanks(b, end+1) {
		return false
	}
	to, open := 0, -1
	switch {
	case b[end] == ']' && endsWith(b, at, " +"):
		to = at - len(" +")
		open = bytes.LastIndexByte(b[:to], '[')
	case b[end] == ')' && endsWith(b, at, " + "):
		to = at - len(" + ")
		open = bytes.LastIndex(b[:to], []byte(" (")) + 1
	}
	if open <= 0 || open+1 >= to || to-open > maxPath {
		return false
	}
	hash := bytes.LastIndexByte(b[:open], '#')
	if hash < 0 || !standsFree(b, hash) {
		return false
	}
	number, colon, ok := decimalAt(b, hash+1)
	if !ok || colon < hash+len("#00") || !hasAt(b, colon, ": ") || colon+len(": ") >= open {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, hash
	f.Module, f.Kind, f.Value, f.Call = r.modules.name(b[open+1:to]), BaseOffset, offset, Return
	name := Span{colon + len(": "), blanksBefore(b, open)}
	l.edit(f, Edit{name, "", Func, ""})
	l.edit(f, Edit{Span{name.To, end + 1}, " (", AtLine, ")"})
	return true
}
