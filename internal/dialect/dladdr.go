package dialect

import "bytes"

// Programs print the results of dladdr in several forms. The form of glibc's backtrace_symbols is
// in glibc.go. Python 3.14 prints a result for each C frame:
//
//	Binary file "/opt/shop/libledger.so", at ledger_audit+0x16 [0x7f31c2a01154]
//	Binary file "/opt/shop/libledger.so", at +0x1154 [0x7f31c2a01154]
//
// backtrace_symbols of libexecinfo, on FreeBSD and with musl, prints
//
//	0x201a2b <ledger_audit+0x1b> at /opt/shop/inventory
//
// mtrace of glibc prints a line for each allocation:
//
//	@ /opt/shop/libledger.so:(ledger_audit+0x16)[0x7f31c2a01154] + 0x55f2006d82a0 0xa
//	@ ./inventory:[0x10a3] - 0x55f2006d82a0
//
// All addresses are return addresses.
var python = Dialect{
	Name: "python", Who: "faulthandler of Python 3.14 and later",
	Needs:  "the file at the path, or --image",
	Sample: `  Binary file "/opt/shop/libledger.so", at ledger_audit+0x16 [0x7f31c2a01154]`,
}

func matchPython(r *Reader, l *Line, at int) bool {
	b := l.Text
	const file, nameless = `Binary file "`, `Binary file '<unknown>' [`
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, "]") || !onlyBlanks(b, end+1) {
		return false
	}
	f := l.frame()
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Return
	start := bytes.Index(b[:at], []byte(file))
	switch {
	case start >= 0:
		text := b[start+len(file) : at-1]
		name, place := text, []byte(nil)
		if i := bytes.LastIndex(text, []byte(`", at `)); i >= 0 {
			name, place = text[:i], bytes.TrimRight(text[i+len(`", at `):], " ")
		} else if name, ok = bytes.CutSuffix(text, []byte(`" `)); !ok {
			return false
		}
		if len(name) == 0 || len(name) > maxPath || !f.inParentheses(place) {
			return false
		}
		f.Module = r.modules.name(name)
	case endsWith(b, at, nameless):
		start = at - len(nameless)
	default:
		return false
	}
	f.Start = start
	l.after(f, end+1)
	return true
}

// matchExecinfo matches a frame of libexecinfo whose distance begins at the given offset. It
// rejects a path with blanks, which looks like a path before symfilter's answer.
func matchExecinfo(r *Reader, l *Line, at int) bool {
	b := l.Text
	from, distance := -1, at
	for n := 0; from < 0; n += 2 { // find the first number with " <" after it
		i := bytes.Index(b[n:distance], []byte(" <"))
		if i < 0 {
			return false
		}
		n += i
		if from = hexBefore(b, n) - len("0x"); from >= 0 && !hasAt(b, from, "0x") {
			from = -1
		}
	}
	addr, end, ok := prefixedHex(b, from)
	if !ok || addr < firstAddress || !standsFree(b, from) {
		return false
	}
	const mark = "> at "
	if !bytes.Contains(b[end:], []byte(mark)) { // faster than LastIndex in lines without the mark
		return false
	}
	close := bytes.LastIndex(b[end:], []byte(mark))
	close += end
	name, offset, ok := offsetAtEnd(b[end+len(" <") : close])
	path := bytes.TrimRight(b[close+len(mark):], " \t\r")
	if !ok || len(name) == 0 || len(path) == 0 || len(path) > maxPath || !isPath(path) || bytes.IndexByte(path, ' ') >= 0 {
		return false
	}
	f := l.frame()
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Return
	if string(name) != "???" {
		f.Symbol = Symbol{Name: string(name), Offset: offset}
	}
	f.Module, f.Start = r.modules.name(path), from
	l.after(f, close+len(mark)+len(path))
	return true
}

// matchMtrace matches a line of glibc's mtrace whose address in brackets begins at the given
// offset. From glibc 2.34 on, the address is an offset from the file's first page. A number of 2^32
// or more is an address in the process: libraries and position-independent programs are loaded
// above 2^32.
func matchMtrace(r *Reader, l *Line, at int) bool {
	b := l.Text
	n, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, 0, "@ ") || !hasAt(b, end, "] ") || at < 3 || !isOperation(b[end+2:]) {
		return false
	}
	f := l.frame()
	to := at - 1
	if b[to-1] == ')' {
		open := openingOf(b, to-1)
		if open < 0 || !f.inParentheses(b[open+1:to-1]) || f.Symbol.Name == "" {
			return false
		}
		to = open
	}
	if to > 2 {
		if to--; to-2 > maxPath || b[to] != ':' {
			return false
		}
		f.Module = r.modules.name(b[2:to])
	}
	f.Call, f.Value, f.Apart = Return, n, true
	if f.Kind = BaseOffset; n>>32 != 0 {
		f.Kind, f.Addr = Runtime, n
	}
	l.after(f, len(bytes.TrimRight(b, " \t\r")))
	return true
}

// isOperation reports whether b is the rest of a line of mtrace: the operation, the address of the
// block, and sometimes its size.
func isOperation(b []byte) bool {
	if len(b) == 0 {
		return false
	}
	sizes := bytes.IndexByte([]byte("+>!"), b[0]) >= 0
	if !sizes && b[0] != '-' && b[0] != '<' || !hasAt(b, 1, " ") {
		return false
	}
	_, end, ok := prefixedHex(b, 2)
	if ok && sizes {
		if hasAt(b, end, " 0") && onlyBlanks(b, end+2) {
			return true // the C library prints 0 without the prefix
		}
		if ok = hasAt(b, end, " "); ok {
			_, end, ok = prefixedHex(b, end+1)
		}
	}
	return ok && len(bytes.TrimRight(b, " \t\r")) == end
}
