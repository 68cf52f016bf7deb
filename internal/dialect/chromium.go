package dialect

import "bytes"

// Chromium, its relatives and Electron print the module of a frame only if they have no symbols:
//
//	#3 0x5581c1d6b2a9 (/opt/shop/chrome+0x61ed2a8)
//	#4 0x7f31c2a01154 <unknown>
//
// The first number is a return address. The second is that address in the file, minus one. V8 also
// prints frames of glibc, after "==== C stack trace ====".
var chromium = Dialect{
	Name: "chromium", Who: "Chromium, Electron, V8",
	Needs:  "the file at the path, or --image",
	Sample: "#3 0x7f31c2a01154 (/opt/shop/libledger.so+0x1153)",
}

func matchChromium(r *Reader, l *Line, at int) bool {
	h, ok := r.modules.hashFrame(l.Text, at)
	if !ok || h.name.From != h.name.To || (h.addr-1-h.place.offset)%PageSize != 0 {
		return false
	}
	f := l.hashed(&h, Vaddr)
	// Chromium also subtracts one from the address at which a signal has interrupted a function,
	// although this address is not a return address
	f.Value, f.Call = f.Value+1, Return
	f.Digits = Span{}
	l.edit(f, Edit{Span{h.open, h.place.end}, "", Name, ""})
	l.edit(f, Edit{Span{h.place.end, h.place.end}, " [", AtLine, "]"})
	return true
}

// matchChromiumUnknown matches a frame without a module, which needs the mappings of the process.
func matchChromiumUnknown(r *Reader, l *Line, at int) bool {
	b := l.Text
	const unknown = " <unknown>"
	number, digits, ok := numberBefore(b, at)
	if !ok {
		return false
	}
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, unknown) || !onlyBlanks(b, end+len(unknown)) {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, digits.From-1
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Return
	to := end + len(unknown)
	l.edit(f, Edit{Span{end + 1, to}, "", Name, ""})
	l.edit(f, Edit{Span{to, to}, " [", AtLine, "]"})
	return true
}

// Node.js prints frames with the exported symbol at the address and the name by which the module
// was loaded:
//
//	1: 0xc8e4a0 node::Abort() [node]
//	4: 0x7f31c2a01154  [/opt/shop/ledger.node]
//
// The addresses are return addresses.
var node = Dialect{
	Name: "node", Who: "Node.js: Native stack trace",
	Needs:  "the files at the paths; for node itself, /usr/bin/node or --image node=FILE",
	Sample: " 4: 0x7f31c2a01154  [/opt/shop/ledger.node]",
}

func matchNode(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	stop := len(bytes.TrimRight(b, " \t\r"))
	if !ok || !hasAt(b, end, " ") || !endsWith(b, stop, "]") || !endsWith(b, at, ": ") {
		return false
	}
	number, start, ok := decimalBefore(b, at-len(": "))
	if !ok || !standsFree(b, start) || start > 0 && b[start-1] != ' ' && b[start-1] != '\t' && b[start-1] != ']' {
		return false
	}
	open := bytes.LastIndex(b[end:stop], []byte(" ["))
	if open < 0 {
		return false
	}
	open += end
	path := b[open+len(" [") : stop-1]
	if len(path) == 0 || len(path) > maxPath || path[0] == '0' {
		return false
	}
	name := Span{min(end+1, open), open}
	text := b[name.From:name.To]
	if _, from, ok := decimalBefore(text, len(text)); ok && from > 0 && text[from-1] == ':' {
		return false // Node has already named the frame
	}
	f := l.frame()
	f.Number, f.Start = number, start
	f.Module, f.Kind, f.Value, f.Addr, f.Call = r.modules.name(path), Runtime, addr, addr, Return
	if len(text) > 0 {
		f.Symbol = Symbol{Name: string(text), Inside: true}
	}
	l.edit(f, Edit{name, "", Func, ""})
	l.edit(f, Edit{Span{open, open}, " ", AtLine, ""})
	return true
}
