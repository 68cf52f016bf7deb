package dialect

import "bytes"

// The error log of a Java virtual machine, hs_err_pidN.log, and its summary on standard output:
//
//	# C  [libledger.so+0x1154]  ledger_audit+0x24
//	C  [libledger.so+0x1154]  ledger_audit+0x24
//	V  [libjvm.so+0x8f3c5d]  JavaCalls::call_helper(JavaValue*)+0x2fd
//	C  0x00007f31c2a01154
//
// and a javacore of OpenJ9:
//
//	4XENATIVESTACK               omrthread_wait+0x1a (0x00007F31C2A01154 [libj9thr29.so+0x1154])
//
// The number in brackets is an offset from the load base. In HotSpot's logs the first frame's
// address is exact, and later frames have return addresses. In a javacore each address may be of
// either kind. The paths of the libraries are in the list "Dynamic libraries:", several hundred
// lines after the frames. JDK 19 and newer print " (file.cpp:123)" after a frame if they find debug
// information.
var jvm = Dialect{
	Name: "jvm", Who: "Java: hs_err_pid files of HotSpot, javacores of OpenJ9",
	Needs:  "the list of dynamic libraries in the same file, or --image",
	Sample: "C  [libledger.so+0x1154]  ledger_audit+0x24",
}

// jvmLines bounds the lines of an error log from its first line to the list of dynamic libraries.
// Large programs print several thousand such lines.
const jvmLines = 8192

// nativeFrames records that the first native frame is on the next line.
func nativeFrames(r *Reader, _ []byte, _ int) { r.jvmFrame = r.facts.at + 1 }

func matchJVM(r *Reader, l *Line, at int) bool {
	b := l.Text
	open := bytes.LastIndexByte(b[:at], ' ') + 1 // a name has no blank
	if open < 3 || at-1-open > maxPath || b[open] != '[' || bytes.IndexByte(b[open+1:at], '[') >= 0 || b[open-2] != ' ' || b[open-3] != 'C' && b[open-3] != 'V' || !standsFree(b, open-3) {
		return false
	}
	name := b[open+1 : at-1]
	offset, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, "]") || len(name) == 0 {
		return false
	}
	end++
	f := l.frame()
	f.Module, f.Kind, f.Value, f.Call = r.modules.name(name), BaseOffset, offset, Return
	f.Start = open - 3
	r.readPast()
	head := f.Start > 1 && b[f.Start-1] == ' ' && b[f.Start-2] == '#'
	if head {
		f.Start -= 2
	}
	if head || r.number == r.jvmFrame {
		f.Call, f.Number = Exact, 0
	}
	rest := len(bytes.TrimRight(b, " \t"))
	if rest == end {
		l.edit(f, Edit{Span{end, end}, "  ", Name, ""})
		l.edit(f, Edit{Span{end, end}, "  (", AtLine, ")"})
		return true
	}
	if !hasAt(b, end, "  ") {
		return false
	}
	plus := hexBefore(b, rest) - len("+0x")
	if plus <= end+2 || !hasAt(b, plus, "+0x") {
		return false
	}
	distance, _, ok := hexAt(b, plus+3)
	if !ok || distance>>62 != 0 {
		return false
	}
	f.Symbol = Symbol{Name: string(b[end+2 : plus]), Offset: int64(distance)}
	l.edit(f, Edit{Span{rest, rest}, "  ", Other, ""})
	l.edit(f, Edit{Span{rest, rest}, "  (", AtLine, ")"})
	return true
}

func matchJVMAddress(r *Reader, l *Line, at int) bool {
	b := l.Text
	if at < 3 || !hasAt(b, at-3, "C  ") || !standsFree(b, at-3) {
		return false
	}
	addr, end, ok := prefixedHex(b, at)
	if !ok || !onlyBlanks(b, end) {
		return false
	}
	f := l.frame()
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Return
	f.Start = at - 3
	if head := f.Start > 1 && b[f.Start-2] == '#'; head || r.number == r.jvmFrame {
		f.Call, f.Number = Exact, 0
	}
	l.edit(f, Edit{Span{end, end}, "  ", Name, ""})
	l.edit(f, Edit{Span{end, end}, "  (", AtLine, ")"})
	return true
}

func matchOpenJ9(r *Reader, l *Line, at int) bool {
	b := l.Text
	const mark = "4XENATIVESTACK"
	offset, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, "])") || !onlyBlanks(b, end+2) {
		return false
	}
	start := bytes.Index(b[:at], []byte(mark))
	open := bytes.LastIndexByte(b[:at], '[')
	if start < 0 || open < start || !hasAt(b, open-1, " [") {
		return false
	}
	from := hexBefore(b, open-1)
	addr, _, ok := hexAt(b, from)
	if !ok || !hasAt(b, from-3, "(0x") || open+1 == at-1 {
		return false
	}
	f := l.frame()
	f.Module, f.Kind, f.Value, f.Addr, f.Call = r.modules.name(b[open+1:at-1]), BaseOffset, offset, addr, Either
	name := bytes.TrimSpace(b[start+len(mark) : from-3])
	if i := bytes.LastIndex(name, []byte("+0x")); i > 0 {
		if n, to, ok := hexAt(name, i+3); ok && to == len(name) && n>>62 == 0 {
			f.Symbol = Symbol{Name: string(name[:i]), Offset: int64(n)}
		}
	}
	f.Start = start
	l.after(f, end+2)
	return true
}
