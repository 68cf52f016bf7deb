package dialect

import "bytes"

// Envoy logs its stack after the mapping of its executable:
//
//	[…][critical][backtrace] [./source/server/backtrace.h:104] Backtrace (use tools/stack_decode.py to get line numbers):
//	[…][critical][backtrace] [./source/server/backtrace.h:107] Address mapping: 55d0c0a01000-55d0c2b00000 /usr/local/bin/envoy
//	[…][critical][backtrace] [./source/server/backtrace.h:111] #0: __restore_rt [0x7f31c2a3c050]
//	[…][critical][backtrace] [./source/server/backtrace.h:113] #1: [0x55d0c0a013cb]
//
// The mapping is the first executable mapping of the file. tools/stack_decode.py adds the address
// in the file, for which addr2line may find no line:
//
//	[0x55d0c0de1234]->[0x39f140] ??:0
//
// Earlier versions print an address without a name as "#0 0x91782b (unknown)". Versions with
// backward-cpp print addresses within the call instructions, and a file once, before its frames:
//
//	[…][critical][backtrace] Backtrace obj</usr/local/bin/envoy> thr<6> (use tools/stack_decode.py):
//	[…][critical][backtrace] thr<6> #0 0x4b47a5
//	[…][critical][backtrace] thr<6> obj</lib/x86_64-linux-gnu/libc.so.6>
//	[…][critical][backtrace] thr<6> #1 0x7f31c2a01153
var envoy = Dialect{
	Name: "envoy", Who: "Envoy, Istio's proxy",
	Needs:  "the executable at its path, or --image",
	Sample: "[critical][backtrace] [./source/server/backtrace.h:111] #1: Envoy::Router::decodeData() [0x55d0c0a013cb]",
}

func matchEnvoy(r *Reader, l *Line, at int) bool {
	b := l.Text
	if endsWith(b, at, "]->[") {
		return matchDecoded(r, l, at)
	}
	addr, end, ok := prefixedHex(b, at)
	if !ok || addr == 0 || !hasAt(b, end, "]") || !onlyBlanks(b, end+1) || at < 2 || b[at-2] != ' ' {
		return false
	}
	number, start, name, ok := numberedName(b[:at-1], "#", ": ")
	if !ok || !r.ofEnvoy(b[:start]) {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, start
	f.Kind, f.Addr, f.Value, f.Call = Runtime, addr, addr, Return
	if name := bytes.TrimSpace(b[name : at-1]); len(name) > 0 {
		f.Symbol = Symbol{Name: string(name), Inside: true}
	}
	l.after(f, end+1)
	return true
}

// envoyMark is in the prefix of a line of Envoy's backtraces.
const envoyMark = "][backtrace] "

// ofEnvoy reports whether a frame belongs to a backtrace of Envoy: prefix, the text before the
// frame, has envoyMark, or Envoy's window is open.
func (r *Reader) ofEnvoy(prefix []byte) bool {
	return bytes.Contains(prefix, []byte(envoyMark)) || r.inWindow(windowEnvoy)
}

// matchDecoded matches an address in the file, at the given offset, for which addr2line found no
// line.
func matchDecoded(r *Reader, l *Line, at int) bool {
	b := l.Text
	open := hexBefore(b, at-len("]->[")) - len("[0x")
	addr, middle, ok1 := prefixedHex(b, open+1)
	value, end, ok2 := prefixedHex(b, at)
	place := end + len("] ")
	if open < 0 || !ok1 || !ok2 || b[open] != '[' || middle+len("]->[") != at || value > addr || !standsFree(b, open) {
		return false
	}
	if !hasAt(b, end, "] ??:0") && !hasAt(b, end, "] ??:?") || !onlyBlanks(b, place+len("??:0")) {
		return false
	}
	if !r.inTrace() {
		r.readPast()
	}
	f := l.frame()
	f.Start = open
	if number, start, _, ok := numberedName(b[:open], "#", ": "); ok {
		f.Number, f.Start = number, start
	}
	if m, ok := r.facts.Covering(addr); ok {
		f.Module = m.Path
	}
	f.Kind, f.Addr, f.Value, f.Call = Vaddr, addr, value, Return
	l.edit(f, Edit{Span{place, place}, "", FuncAt, " "})
	l.edit(f, Edit{Span{place, place + len("??:0")}, "", AtLine, ""})
	return true
}

// matchOldEnvoy matches a frame of an earlier version of Envoy.
func matchOldEnvoy(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	number, digits, ok2 := decimalBefore(b, at-1)
	start := digits - len("#")
	if !ok || !ok2 || addr < firstAddress || start < 0 || b[start] != '#' || b[at-1] != ' ' {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, start
	f.Kind, f.Addr, f.Value, f.Call = Runtime, addr, addr, Return
	const unknown = "(unknown)"
	if from := end + 1; hasAt(b, end, " "+unknown) {
		if !onlyBlanks(b, from+len(unknown)) || !r.ofEnvoy(b[:start]) {
			return false
		}
		l.edit(f, Edit{Span{from, from + len(unknown)}, "", Name, ""})
		l.edit(f, Edit{Span{from + len(unknown), from + len(unknown)}, " ", AtLine, ""})
		return true
	}
	thread, from, ok := decimalBefore(b, start-len("> "))
	if !ok || !onlyBlanks(b, end) || !endsWith(b, start, "> ") || !endsWith(b, from, "thr<") {
		return false
	}
	if !r.inTrace() {
		r.readPast()
	}
	if o := &r.envoy; o.line > 0 && o.thread == thread && r.number-o.line < WindowLines {
		f.Module = o.path
	}
	f.Call = Adjusted
	l.after(f, end)
	return true
}

type envoyObject struct {
	thread int
	path   string
	line   int64 // line of the report; 0: none
}

// envoyFile reads the file of the next frames from a line that has "obj<" at the given offset. The
// thread's number is before or after the file.
func envoyFile(r *Reader, b []byte, at int) {
	const mark = "thr<"
	from := at + len("obj<")
	to := bytes.IndexByte(b[from:], '>')
	number := bytes.Index(b, []byte(mark))
	if to < 1 || to > maxPath || number < 0 {
		return
	}
	thread, end, ok := decimalAt(b, number+len(mark))
	if !ok || !hasAt(b, end, ">") {
		return
	}
	r.envoy = envoyObject{thread, r.modules.name(b[from : from+to]), r.facts.at}
}

// numberedName finds a number between two texts, the parameters before and after. The first text is
// at the start of b or follows a blank. start is its offset, and name is the offset at which the
// second text ends.
func numberedName(b []byte, before, after string) (number, start, name int, ok bool) {
	for at := 0; ; {
		i := bytes.Index(b[at:], []byte(before))
		if i < 0 {
			return 0, 0, 0, false
		}
		start, at = at+i, at+i+len(before)
		n, end, ok := decimalAt(b, at)
		if ok && hasAt(b, end, after) && (start == 0 || b[start-1] == ' ' || b[start-1] == '\t') {
			return n, start, end + len(after), true
		}
	}
}

// envoyMapping adds the executable's mapping from a line that has "Address mapping: " at the given
// offset.
func envoyMapping(r *Reader, b []byte, at int) {
	at += len("Address mapping: ")
	from, end, ok := hexAt(b, at)
	if !ok || !hasAt(b, end, "-") {
		return
	}
	to, end, ok := hexAt(b, end+1)
	if !ok || from >= to || !hasAt(b, end, " /") {
		return
	}
	path := bytes.TrimRight(b[end+1:], " \t")
	r.facts.AddMap(Map{Start: from, End: to, Path: string(path), Code: true, FirstCode: true})
}
