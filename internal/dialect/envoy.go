package dialect

import "bytes"

// Envoy logs its stack after the mapping of its executable:
//
//	[…][critical][backtrace] [./source/server/backtrace.h:104] Backtrace (use tools/stack_decode.py to get line numbers):
//	[…][critical][backtrace] [./source/server/backtrace.h:107] Address mapping: 55d0c0a01000-55d0c2b00000 /usr/local/bin/envoy
//	[…][critical][backtrace] [./source/server/backtrace.h:111] #0: __restore_rt [0x7f31c2a3c050]
//	[…][critical][backtrace] [./source/server/backtrace.h:113] #1: [0x55d0c0a013cb]
//
// The mapping is the first executable one.
var envoy = Dialect{
	Name: "envoy", Who: "Envoy, Istio's proxy",
	Needs:  "the executable at its path, or --image",
	Sample: "[critical][backtrace] [./source/server/backtrace.h:111] #1: Envoy::Router::decodeData() [0x55d0c0a013cb]",
}

// matchEnvoy matches a frame whose address in brackets begins at at.
func matchEnvoy(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || addr == 0 || !hasAt(b, end, "]") || !onlyBlanks(b, end+1) || at < 2 || b[at-2] != ' ' {
		return false
	}
	number, start, name, ok := numberedName(b[:at-1], "#", ": ")
	if !ok {
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

// numberedName finds a number between before and after in b, at the start of b or after a blank. It
// returns the number, and the offsets of the frame and of its name.
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

// envoyMapping adds the mapping of the executable from a line that has "Address mapping: " at at.
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
