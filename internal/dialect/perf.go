package dialect

import "bytes"

// perf script prints the call chain of a sample:
//
//	inventory  4711  27427.945316:          1 page-faults:
//	        ffffffff82259cc1 do_syscall_64+0x71 ([kernel.kallsyms])
//	                    1162 [unknown] (/opt/shop/libledger.so)
//	                    113e ledger::Book::close+0xe (/opt/shop/libledger.so)
//
// The first number is an offset in the file in perf 5.6 to 6.3, and an address in the process in
// older and newer versions. strace -k prints offsets in the file after the line of a system call or
// signal:
//
//	> /opt/shop/libledger.so(ledger_audit+0x19) [0x1169]
//	> /opt/shop/inventory() [0x1065]
//
// A stack's first frame has the address of an instruction, or the address after a system call
// instruction. Other frames have return addresses.
var (
	perf = Dialect{
		Name: "perf", Who: "perf script",
		Needs:  "the file at the path; perf before 5.6 and since 6.4 also needs --show-mmap-events, unless named frames show the base",
		Sample: "\t            1154 [unknown] (/opt/shop/libledger.so)",
	}
	strace = Dialect{
		Name: "strace", Who: "strace -k",
		Needs:  "the file at the path",
		Sample: " > /opt/shop/libledger.so() [0x1154]",
	}
)

// matchPerfUnknown matches a frame without a name, which has "wn]" at the given offset.
func matchPerfUnknown(r *Reader, l *Line, at int) bool {
	const unknown = "[unknown]"
	end := at + len("wn]")
	name := Span{end - len(unknown), end}
	return hasAt(l.Text, name.From, unknown) && r.matchPerf(l, name, Symbol{})
}

// matchPerfNumber matches a map, or a frame with a name. One grammar has both, because an anchor
// has a limited number of grammars.
func matchPerfNumber(r *Reader, l *Line, at int) bool {
	if l.Text[at-1] == '[' {
		return matchPerfMap(r, l, at)
	}
	return matchPerfNamed(r, l, at)
}

// matchPerfNamed matches a frame with a name. The distance from the named function is at the given
// offset.
func matchPerfNamed(r *Reader, l *Line, at int) bool {
	offset, end, ok := prefixedHex(l.Text, at)
	if !ok || offset>>62 != 0 {
		return false
	}
	// the address is the first word, or the first after the event; a name may contain blanks
	digits, _ := perfStart(l.Text[:at])
	from := blanksAfter(l.Text, hexDigits(l.Text, digits))
	if from >= at-1 {
		return false
	}
	s := Symbol{Name: string(l.Text[from : at-1]), Offset: int64(offset)}
	return r.matchPerf(l, Span{from, end}, s)
}

// matchPerf matches a frame whose function s is at name in the line.
func (r *Reader) matchPerf(l *Line, name Span, s Symbol) bool {
	b := l.Text
	digits, event := perfStart(b[:name.From])
	n, end, ok := hexAt(b, digits)
	if !ok || digits == 0 || blanksAfter(b, end) != name.From || end == name.From || !hasAt(b, name.To, " (/") {
		return false
	}
	to := len(bytes.TrimRight(b, " \t\r"))
	path := b[name.To+2 : to-1]
	if b[to-1] != ')' || len(path) > maxPath {
		return false
	}
	f := l.frame()
	f.Symbol, f.Start, f.Call = s, digits, Return
	f.Kind, f.Value = FileOrRuntime, n
	if n>>32 != 0 {
		f.Kind, f.Addr = Runtime, n // offsets in a file are smaller
	}
	// perf script -F +dsoff prints the offset in the file
	if i := bytes.LastIndex(path, []byte("+0x")); i > 0 && hexDigits(path, i+3) == len(path) {
		if offset, _, ok := hexAt(path, i+3); ok {
			f.Kind, f.Value, path = FileOffset, offset, path[:i]
		}
	}
	path, f.Deleted = bytes.CutSuffix(path, []byte(" (deleted)"))
	f.Module = r.modules.name(path)
	if event || !r.follows(perfFrame) {
		f.Call = System
	}
	if s.Name == "" {
		l.edit(f, Edit{name, "", Name, ""})
	}
	l.edit(f, Edit{Span{to, to}, " ", AtLine, ""})
	return true
}

// perfStart returns the offset of the address in b, the start of a frame. event is set for a sample
// without a call chain, which has its address on the event's line:
//
//	inventory  4711  27427.945316:     250000 cycles:      7f31c2a01162 ledger_audit+0x12 (/opt/shop/libledger.so)
func perfStart(b []byte) (start int, event bool) {
	const before = ":    " // addresses in user space have at most 12 of 16 columns
	if i := bytes.LastIndex(b, []byte(before)); i > 0 {
		return blanksAfter(b, i+1), true
	}
	return blanksAfter(b, 0), false
}

// perfFrame reports whether b is a frame of perf script outside of [kernel.kallsyms].
func perfFrame(b []byte) bool {
	from := blanksAfter(b, 0)
	end := hexDigits(b, from)
	return from > 0 && end > from && hasAt(b, end, " ") && bytes.HasSuffix(b, []byte(")")) &&
		!bytes.HasSuffix(b, []byte("([kernel.kallsyms])"))
}

// matchPerfMap matches an event of perf script --show-mmap-events, whose start address is at the
// given offset:
//
//	PERF_RECORD_MMAP2 4711/4711: [0x7f25058c7000(0x1000) @ 0x1000 fe:01 1835021 0]: r-xp /opt/shop/libledger.so
//	PERF_RECORD_MMAP2 4711/4711: [0x7f25058c7000(0x1000) @ 0x1000 <c78d6009…>]: r-xp /opt/shop/libledger.so
func matchPerfMap(r *Reader, l *Line, at int) bool {
	b := l.Text
	const event = "PERF_RECORD_MMAP"
	if i := bytes.Index(b[:at], []byte(event)); i < 0 || !standsFree(b, i) {
		return false
	}
	start, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, "(") {
		return false
	}
	size, end, ok := prefixedHex(b, end+1)
	if !ok || !hasAt(b, end, ") @ ") || start+size <= start {
		return false
	}
	end += len(") @ ")
	if hasAt(b, end, "0x") {
		end += 2
	}
	offset, end, ok := hexAt(b, end)
	close := bytes.IndexByte(b[end:], ']')
	if !ok || close < 0 {
		return false
	}
	close += end
	var digits []byte
	if i := bytes.IndexByte(b[end:close], '<'); i >= 0 && b[close-1] == '>' {
		digits = b[end+i+1 : close-1]
	}
	const after = "]: "
	mode := close + len(after)
	if !hasAt(b, close, after) || len(b) < mode+6 || !isMode(b[mode:]) || b[mode+5] != '/' || len(b)-mode > maxPath {
		return false
	}
	m := Map{Start: start, End: start + size, Offset: offset, Path: string(b[mode+5:]), Code: b[mode+2] == 'x'}
	r.facts.touch(r.number)
	r.facts.AddMap(m)
	if id, ok := r.modules.id(digits); ok {
		r.facts.AddModule(ModuleFact{Name: m.Path, ID: id})
	}
	return true
}

// matchStrace matches a frame of strace -k whose offset in the file begins at the given index of
// the line.
func matchStrace(r *Reader, l *Line, at int) bool {
	b := l.Text
	const mark = " > /"
	if !hasAt(b, 0, mark) || !endsWith(b, at, ") [") {
		return false
	}
	offset, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, "]") || !onlyBlanks(b, end+1) {
		return false
	}
	from, close := len(mark)-1, at-len(") [")
	open := bytes.IndexByte(b[from:close+1], '(') + from
	if open < from {
		return false
	}
	gone := open > from && hasAt(b, open, "(deleted)(") && b[open-1] == ' '
	path := b[from:open]
	if gone {
		path, open = b[from:open-1], open+len("(deleted)")
	}
	f := l.frame()
	if open > close || len(path) > maxPath || !f.inParentheses(b[open+1:close]) {
		return false
	}
	f.Module, f.Deleted, f.Start = r.modules.name(path), gone, from
	f.Kind, f.Value, f.Addr, f.Call = FileOffset, offset, 0, Return
	if !r.follows(straceFrame) {
		f.Call = System
	}
	l.after(f, end+1)
	return true
}

func straceFrame(b []byte) bool { return hasAt(b, 0, " > ") && bytes.HasSuffix(b, []byte("]")) }
