package dialect

import "bytes"

// QNX's line about a process killed by a fault:
//
//	Process 1234 (inventory) terminated SIGSEGV code=1 fltno=11 ip=0000004d5a7f0b14(/lib/libc.so@strlen+0x10) mapaddr=000000000006ab14. ref=0000000000000000
//
// "ip" is the address of the instruction, mapaddr its offset in the file.
var qnx = Dialect{
	Name: "qnx", Who: "QNX: the line about a process killed by a fault",
	Needs:  "the file at the path, or --image NAME=FILE",
	Sample: "Process 1234 (inventory) terminated SIGSEGV code=1 fltno=11 ip=0000004d5a7f0b14(/lib/libc.so@strlen+0x10) mapaddr=000000000006ab14. ref=0000000000000000",
}

func matchQNX(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, open, ok := hexAt(b, at+len("ip="))
	const offset = " mapaddr="
	mark := bytes.Index(b[at:], []byte(offset))
	if !ok || !hasAt(b, at, "ip=") || mark < 0 {
		return false
	}
	mark += at
	value, end, ok := hexAt(b, mark+len(offset))
	if !ok || !hasAt(b, open, "(") || b[mark-1] != ')' || !onlyAssigned(b[end:]) {
		return false
	}
	f := l.frame()
	name := b[open+1 : mark-1]
	if i := bytes.LastIndexByte(name, '@'); i >= 0 {
		plus := bytes.LastIndex(name, []byte("+0x"))
		if plus < i {
			return false
		}
		n, last, ok := hexAt(name, plus+3)
		if !ok || last != len(name) || n>>62 != 0 {
			return false
		}
		f.Symbol = Symbol{Name: string(name[i+1 : plus]), Offset: int64(n)}
		name = name[:i]
	}
	if len(name) == 0 || len(name) > maxPath {
		return false
	}
	f.Module = r.modules.name(name)
	f.Addr, f.Kind, f.Value, f.Call = addr, FileOffset, value, Exact
	f.Start = at
	l.after(f, len(bytes.TrimRight(b, " \t")))
	return true
}

// onlyAssigned reports whether b has only words like ref=0000, after a dot.
func onlyAssigned(b []byte) bool {
	for _, word := range bytes.Fields(bytes.TrimPrefix(b, []byte("."))) {
		i := bytes.IndexByte(word, '=')
		if i < 1 || hexDigits(word, i+1) != len(word) {
			return false
		}
	}
	return true
}
