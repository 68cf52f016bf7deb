package dialect

import "bytes"

// The family of glibc's backtrace_symbols and backtrace_symbols_fd, which many programs print behind
// texts of their own:
//
//	/opt/shop/libledger.so(ledger_audit+0x16) [0x7f31c2a01154]
//	/opt/shop/inventory(+0x13cb)[0x55d0c0a013cb]
//	./inventory() [0x40137f]
//	/opt/shop/inventory[0x40137f]
//
// Without a name the number in brackets is an offset from the load base. All addresses are return
// addresses, but for those that follow a signal.
var glibc = Dialect{
	Name: "glibc", Who: "glibc's backtrace_symbols: Redis, PostgreSQL, MySQL, MariaDB, Ceph, Samba, OpenMPI, Python 3.14 and many others",
	Needs:  "the file at the path, or --image",
	Sample: "/opt/shop/libledger.so(+0x1154) [0x7f31c2a01154]",
}

// matchGlibc matches a frame whose address in brackets begins at at.
func matchGlibc(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, "]") {
		return false
	}
	end++
	if !onlyBlanks(b, end) && !hasAt(b, end, " (??:0)") {
		return false
	}
	f := l.frame()
	f.Addr, f.Call, f.Kind, f.Value = addr, Return, Runtime, addr
	close := at - 1
	if close > 0 && b[close-1] == ' ' {
		close--
	}
	to := close // the end of the path
	if close > 0 && b[close-1] == ')' {
		open := bytes.LastIndexByte(b[:close-1], '(')
		if nested := bytes.IndexByte(b[:close-1], '('); open < 0 {
			return false
		} else if bytes.IndexByte(b[open:close-1], ')') >= 0 { // MySQL demangles: f(char*)+0x1
			open = nested
		}
		if !f.inBrackets(b[open+1 : close-1]) {
			return false
		}
		to = open
	} else if close != at-1 {
		return false // a path directly before the bracket has no blank
	}
	from := pathBefore(b, to)
	if from == to {
		return false
	}
	f.Module = r.name(b[from:to])
	f.Start = from
	l.after(f, len(bytes.TrimRight(b, " \t")))
	return true
}

// inBrackets parses what stands between the path and the address: SYMBOL+0xOFFSET, SYMBOL-0xOFFSET,
// +0xOFFSET, or nothing.
func (f *Frame) inBrackets(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	digits := hexBefore(b, len(b))
	if digits < 3 || digits == len(b) || b[digits-1] != 'x' || b[digits-2] != '0' {
		return false
	}
	n, _, ok := hexAt(b, digits)
	sign := b[digits-3]
	if !ok || n>>62 != 0 || sign != '+' && sign != '-' {
		return false
	}
	name := b[:digits-3]
	if len(name) == 0 {
		f.Kind, f.Value = BaseOffset, n
		if sign == '-' {
			f.Value = -n
		}
		return true
	}
	f.Symbol = Symbol{Name: string(name), Offset: int64(n)}
	if sign == '-' {
		f.Symbol.Offset = -int64(n)
	}
	return true
}

// pathBefore returns the start of the path that ends at end. A path may have blanks if it begins
// with "/"; otherwise it begins after the last blank.
func pathBefore(b []byte, end int) (start int) {
	start = bytes.LastIndexAny(b[:end], " \t") + 1
	if start < end && (b[start] == '/' || b[start] == '.') {
		return start
	}
	if i := bytes.Index(b[:end], []byte(" /")); i >= 0 {
		return i + 1
	}
	if len(b) > 0 && b[0] == '/' {
		return 0
	}
	return start
}
