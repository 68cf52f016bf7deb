package dialect

import "bytes"

// HAProxy prints the calls of a thread that is stuck, or has failed a check, as
//
//	call trace(21):
//	| 0x55d0c0a013cb [85 c0 75 31 48 8b 84 24]: main+0x171aa7
//	| 0x55d0c0a02c11 [8b 55 04 48 8b 45 28 f6]: task_run_applet+0x148/0x674
//	| 0x7f31c2a3c050 [48 c7 c0 0f 00 00 00 0f]: libc:+0x3c050
//	| 0x55d0c0a02d00 [48 89 ee 48 89 df e8 3b]: main+0x170cda > main+0x1000
//
// The program is not named; addresses in it without an exported symbol are relative to main. Names
// of libraries end at the first dot, and offsets without a symbol are relative to the library's
// base. The bytes are the code at the address, which shows whether a file has run. All addresses
// are return addresses, except after a signal. The last form ends with the called function.
var haproxy = Dialect{
	Name: "haproxy", Who: "HAProxy: the call trace of a thread that is stuck or has failed",
	Needs:  "a file named haproxy in a system folder, or --image haproxy=FILE",
	Sample: "| 0x55d0c0a013cb [85 c0 75 31 48 8b 84 24]: main+0x171aa7",
}

const listedCode = 8 // bytes of code that HAProxy prints for an address

// RestoreRT is the code of glibc's __restore_rt.
const RestoreRT = "\x48\xc7\xc0\x0f\x00\x00\x00\x0f\x05"

func matchHAProxy(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	bar := blanksBefore(b, at) - 1
	if !ok || addr < firstAddress || bar < 0 || b[bar] != '|' || !standsFree(b, bar) || !hasAt(b, end, " [") {
		return false
	}
	end += len(" [")
	listed := make([]byte, 0, listedCode)
	for len(listed) < listedCode {
		value, to, ok := hexAt(b, end)
		if !ok || to != end+2 || to == len(b) {
			return false
		}
		listed = append(listed, byte(value))
		end = to + 1
	}
	if !hasAt(b, end-1, "]: ") {
		return false
	}
	from := end - 1 + len("]: ")
	to := len(bytes.TrimRight(b, " \t"))
	place := b[from:max(from, to)]
	if i := bytes.Index(place, []byte(" > ")); i >= 0 {
		if bytes.IndexByte(place[i+len(" > "):], ' ') >= 0 {
			return true
		}
		place = place[:i]
	}
	if len(place) == 0 || bytes.IndexByte(place, ' ') >= 0 {
		return true // answered; true keeps kernel grammars from matching NAME+0xDISTANCE/0xSIZE
	}
	f := l.frame()
	f.Start, f.Kind, f.Value, f.Addr, f.Call = bar, Runtime, addr, addr, Return
	f.Module, f.Code = "haproxy", listed
	if i := bytes.IndexByte(place, ':'); i > 0 && !hasAt(place, i, "::") {
		f.Module, place = r.modules.name(place[:i]), place[i+1:]
	}
	if !f.nameAndOffset(place) {
		return false
	}
	if r.glibc.exactAfter > 0 && r.glibc.exactAfter == r.number-1 {
		f.Call = Exact
	}
	if r.glibc.exactAfter = 0; bytes.HasPrefix([]byte(RestoreRT), listed) {
		r.glibc.exactAfter = r.number
	}
	l.after(f, to)
	return true
}

// nameAndOffset parses NAME, NAME+0xOFFSET, NAME+0xOFFSET/0xSIZE, NAME-0xOFFSET or +0xOFFSET.
func (f *Frame) nameAndOffset(b []byte) bool {
	if i := bytes.LastIndex(b, []byte("/0x")); i > 0 {
		size, end, ok := hexAt(b, i+len("/0x"))
		if !ok || end != len(b) {
			return false
		}
		f.Symbol.Size, b = size, b[:i]
	}
	size := f.Symbol.Size
	if name, offset, ok := offsetAtEnd(b); ok && len(name) == 0 {
		f.Kind, f.Value = BaseOffset, uint64(offset)
	} else if ok {
		f.Symbol = Symbol{Name: string(name), Offset: offset, Size: size}
	} else {
		f.Symbol = Symbol{Name: string(b)}
	}
	return true
}
