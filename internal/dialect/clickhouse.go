package dialect

import (
	"bytes"

	"github.com/symfilter/symfilter/buildid"
)

// ClickHouse prints traces in its log and in its exceptions:
//
//	<Fatal> BaseDaemon: 1. DB::TCPHandler::run() @ 0x000000000f5a1b2c
//	<Fatal> BaseDaemon: 2. ? @ 0x0000000000027249 in /usr/lib/x86_64-linux-gnu/libc.so.6
//
// The number after "@" is a return address, as an address in the ELF file. A frame without a path
// is in the executable. The lines about the signal and the server's start have the build ID of the
// executable.
//
// A line with the addresses of the same frames precedes the frames, or replaces them:
//
//	<Fatal> BaseDaemon: Stack trace: 0x000000000f5a1b2c 0x00007f31c2a01154
var clickhouse = Dialect{
	Name: "clickhouse", Who: "ClickHouse",
	Needs:  "the build ID in the log, or --image clickhouse=FILE",
	Sample: "2026.11.20 10:00:00.123456 [ 4711 ] {} <Fatal> BaseDaemon: 1. ? @ 0x0000000000001154",
}

func matchClickHouse(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || !endsWith(b, at, " @ ") {
		return false
	}
	name := Span{To: at - len(" @ ")}
	start, number := numberedStart(b[:name.To])
	if start < 0 {
		return false
	}
	name.From = start + bytes.IndexByte(b[start:], ' ') + 1
	function := b[name.From:name.To]
	if len(function) == 0 || hasLine(function) {
		return false // ClickHouse has found the source line itself
	}
	if !r.inTrace() {
		r.readPast()
	}
	f := l.frame()
	f.Number, f.Kind, f.Value, f.Call, f.Start = number, Vaddr, addr, Return, start
	const in = " in "
	switch main := r.facts.Main(); {
	case onlyBlanks(b, end):
		if f.Module = clickhouse.Name; main.Name == clickhouse.Name {
			f.ID = main.ID
		}
	case hasAt(b, end, in+"/") && len(b)-end < maxPath:
		path := bytes.TrimRight(b[end+len(in):], " \t\r")
		if bytes.IndexByte(path, ' ') >= 0 {
			return false // a path with blanks looks like a path followed by an answer
		}
		f.Module = r.modules.name(path)
	default:
		return false
	}
	if r.clickHouseSignal > 0 && r.number-r.clickHouseSignal < maxDump && !bytes.Contains(function, []byte("StackTrace::StackTrace(")) {
		f.Call = Exact // ClickHouse omits the frames of the signal handler
	}
	r.clickHouseSignal = 0
	f.Inline = InlineNumbered
	l.edit(f, Edit{Span{name.From, name.From}, "", AtLine, ": "})
	if string(function) == "?" {
		l.edit(f, Edit{name, "", Func, ""})
	}
	return true
}

// firstLibrary bounds the addresses of ClickHouse's own builds, which are not position-independent.
// Their code is in the first 2 GiB (the psABI's small code model), where Linux maps neither
// libraries nor position-independent programs.
const firstLibrary = 1 << 31

// matchClickHouseList matches a line with a list of addresses. The first address is at the given
// offset.
func matchClickHouseList(r *Reader, l *Line, at int) bool {
	b := l.Text
	const mark = "Stack trace: "
	if !endsWith(b, at, mark) || !standsFree(b, at-len(mark)) {
		return false
	}
	if !r.inTrace() {
		r.readPast()
	}
	for end := at - 1; !onlyBlanks(b, end); {
		addr, to, ok := prefixedHex(b, end+1)
		if !ok || b[end] != ' ' || addr < firstAddress || len(l.Frames) == maxListed {
			return false
		}
		f := l.frame()
		f.Kind, f.Addr, f.Value, f.Call = Runtime, addr, addr, Return
		if addr < firstLibrary {
			f.Kind, f.Program = Vaddr, true
		}
		f.Below = "  " + string(b[end+1:to]) + ": "
		end = to
	}
	if r.clickHouseSignal > 0 && r.number-r.clickHouseSignal < maxDump {
		l.Frames[0].Call = Exact // ClickHouse omits the frames of the signal handler
	}
	return true
}

// Repeated reports whether next, the line after f's, begins a list of the same frames with names.
func (f *Frame) Repeated(next []byte) bool {
	if f.Dialect != &clickhouse || f.Below == "" {
		return false
	}
	next = WithoutColors(next)
	if i := bytes.Index(next, []byte(". inlined from ")); i > 0 && isDigit(next[i-1]) {
		return true
	}
	to := bytes.LastIndex(next, []byte(" @ 0x"))
	if to < 0 {
		return false
	}
	start, _ := numberedStart(next[:to])
	return start >= 0
}

// numberedStart returns the first number in b that may begin a ClickHouse frame, such as "1. ", and
// its offset. The offset is -1 without such a number.
func numberedStart(b []byte) (start, number int) {
	for at := 0; at < len(b); {
		i := bytes.Index(b[at:], []byte(". "))
		if i < 0 {
			break
		}
		at += i
		n, from, ok := decimalBefore(b, at)
		if ok && (from == 0 || b[from-1] == ' ' || b[from-1] == '\t') {
			return from, n
		}
		at += 2
	}
	return -1, 0
}

// hasLine reports whether b, the function in a ClickHouse frame, includes a file and line: before
// the name, or after the name in versions before 20.
func hasLine(b []byte) bool {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], ':')
		if i < 0 {
			return false
		}
		at += i + 1
		if _, end, ok := decimalAt(b, at); ok && (end == len(b) || hasAt(b, end, ": ") || b[end] == ' ') {
			return true
		}
	}
}

// clickhouseBuild reads ClickHouse's build ID:
//
//	(version 24.8.4.13 (official build), build id: 7D1C…, git hash: …) (from thread 4711) Received signal 11
//	Starting ClickHouse 24.8.4.13 (revision: 54491, git hash: …, build id: 7D1C…), PID 12
func clickhouseBuild(r *Reader, b []byte, at int) {
	if !bytes.Contains(b[:at], []byte("version ")) && !bytes.Contains(b[:at], []byte("ClickHouse ")) {
		return
	}
	from := at + len("build id: ")
	id, ok := r.modules.id(b[from:hexDigits(b, from)])
	if !ok {
		id = buildid.ID{}
	}
	r.facts.AddModule(ModuleFact{Name: clickhouse.Name, ID: id, Main: true})
	if bytes.Contains(b[at:], []byte(") Received signal ")) {
		r.clickHouseSignal = r.facts.at
	}
}
