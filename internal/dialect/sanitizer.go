package dialect

import (
	"bytes"
	"errors"
	"path"

	"github.com/symfilter/symfilter/buildid"
)

// AddressSanitizer, LeakSanitizer, MemorySanitizer, HWASan, UBSan and libFuzzer print frames in the
// default format of the sanitizers' StackTracePrinter:
//
//	#1 0x7f31…  (/opt/shop/libledger.so+0x1153) (BuildId: 3a0a920c…)
//	#2 0x7f31… in ledger::Book::close() (/opt/shop/libledger.so+0x119b) (BuildId: 3a0a920c…)
//
// ThreadSanitizer:
//
//	#1 <null> <null> (libledger.so+0x1153) (BuildId: 3a0a920c…)
//
// The number after "+" is an address in the ELF file: a return address minus one. GCC's sanitizers
// print no build ID before GCC 14.
var (
	sanitizer = Dialect{
		Name: "sanitizer", Who: "AddressSanitizer, LeakSanitizer, MemorySanitizer, UBSan, HWASan and libFuzzer, of LLVM or GCC",
		Needs:  "the build ID in the frame (since LLVM 15 and GCC 14), or the file at the path",
		Sample: "    #1 0x7f31c2a01153  (/opt/shop/libledger.so+0x1153) (BuildId: 3a0a920c3f1b7c55)",

		FramePointers: true,
	}
	tsan = Dialect{
		Name: "tsan", Who: "ThreadSanitizer",
		Needs:  "the build ID in the frame (since LLVM 15 and GCC 14)",
		Sample: "    #1 <null> <null> (libledger.so+0x1153) (BuildId: 3a0a920c3f1b7c55)",
	}
)

// ErrCut is the reason why a frame is not located if the line's end cuts off its module or offset.
var ErrCut = errors.New("the line is cut off within the module's name or offset")

func matchSanitizer(r *Reader, l *Line, at int) bool {
	b := l.Text
	number, digits, ok := numberBefore(b, at)
	if !ok {
		return false
	}
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, " ") {
		return false
	}
	t := r.ends.find(b[end:])
	if t == nil {
		parsed, ok := r.modules.sanitizerEnd(b[end:])
		if !ok {
			return false
		}
		t = r.ends.add(b[end:], parsed)
	}
	if t.name.To == 1 && !hasAt(b, digits.From-3, "  #") {
		return false // "#1 0x7f31 (L+0x1153)" is a frame of Chromium, LLVM or symfilter
	}
	f := l.frame()
	f.Number, f.Digits = number, digits
	f.Module, f.ID, f.Prefix, f.Kind, f.Value, f.Addr, f.Call, f.Key = t.module, t.id, t.prefix, Vaddr, t.offset, addr, Adjusted, t.key
	f.Start = digits.From - 1
	f.Inline = InlineFrames
	l.edits = append(l.edits,
		Edit{Span{end + t.name.From, end + t.name.To}, "in ", BareFunc, " "},
		Edit{Span{end + t.name.To, end + t.end}, "", AtSource, ""})
	f.Edits = l.edits
	return true
}

// sanitizerEnd parses the text after the address of a frame: "  (MODULE+0xOFFSET)" or
// " in FUNCTION (MODULE+0xOFFSET)", with or without a build ID.
func (c *modules) sanitizerEnd(b []byte) (t frameEnd, ok bool) {
	open := blanksAfter(b, 0)
	if open > 2 || open == len(b) {
		return t, false
	}
	t.name = Span{1, open} // text that the function replaces
	if hasAt(b, open, "in ") {
		if open = lastModule(b, open+3); open < 0 {
			return t, false
		}
		t.name.To = open
	}
	t.place, ok = c.plus(b, open)
	return t, ok && onlyBlanks(b, t.end)
}

// matchNamed matches a frame that the producer has named, or that has no module. Its number changes
// if earlier frames get inlined calls.
func matchNamed(_ *Reader, l *Line, at int) bool {
	b := l.Text
	number, digits, ok := numberBefore(b, at)
	if !ok || digits.From < 2 {
		return false
	}
	end := hexDigits(b, at+2)
	rest := blanksAfter(b, end)
	if !hasAt(b, end, " ") || !hasAt(b, rest, "in ") && !(hasAt(b, rest, "(") && hasAt(b, digits.From-3, "  #")) {
		return false
	}
	f := l.frame()
	f.Number, f.Digits, f.Start, f.Named = number, digits, digits.From-1, true
	if hasAt(b, rest, "(/") && bytes.IndexByte(b[rest:], ')') < 0 {
		f.Unread = ErrCut
	}
	if hasAt(b, rest, "(<unknown module>)") {
		f.Unread = ErrNoFile
	}
	if f.Unread != nil {
		f.Named, f.Kind = false, Runtime
		f.Addr, _, _ = prefixedHex(b, at)
	}
	return true
}

// matchMinimal matches a message of UBSan's minimal runtime, whose return address is at the given
// offset:
//
//	ubsan: shift-out-of-bounds by 0x000055deef130cb6
func matchMinimal(_ *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	start := bytes.LastIndex(b[:at], []byte("ubsan: "))
	const by = " by "
	if !ok || start < 0 || !standsFree(b, start) || !endsWith(b, at, by) || !onlyBlanks(b, end) ||
		bytes.IndexByte(b[start+len("ubsan: "):at-len(by)], ' ') >= 0 {
		return false
	}
	f := l.frame()
	f.Start, f.Kind, f.Value, f.Addr, f.Call = start, Runtime, addr, addr, Return
	l.after(f, end)
	return true
}

// matchTSan matches a frame whose module-relative address begins at the given offset.
func matchTSan(r *Reader, l *Line, at int) bool {
	b := l.Text
	open := bytes.LastIndexByte(b[:at], '(')
	if open < 4 || b[open-1] != ' ' {
		return false
	}
	m, ok := r.modules.plus(b, open)
	if !ok || !onlyBlanks(b, m.end) {
		return false
	}
	hash := bytes.LastIndex(b[:open], []byte(" #"))
	if hash++; hash == 0 && b[0] != '#' {
		return false
	}
	number, end, ok := decimalAt(b, hash+1)
	if !ok || !hasAt(b, end, " ") || hasAt(b, end+1, "0x") || hasAt(b, end+1, " ") {
		return false
	}
	f := l.frame()
	f.Number, f.Digits, f.Start = number, Span{hash + 1, end}, hash
	const null = "<null>"
	unknown := Span{open - 1 - len(null), open - 1}
	if !hasAt(b, unknown.From, null) {
		f.Named = true // or the text only looks like a frame
		_, digits, ok := decimalBefore(b, open-1)
		return ok && b[digits-1] == ':'
	}
	if end+1 > unknown.From-1 || b[unknown.From-1] != ' ' {
		return false
	}
	f.Module, f.ID, f.Prefix, f.Kind, f.Value, f.Call = m.module, m.id, m.prefix, Vaddr, m.offset, Adjusted
	f.Inline = InlineFrames
	l.edit(f, Edit{Span{end + 1, unknown.From - 1}, "", BareFunc, ""})
	l.edit(f, Edit{unknown, "", AtSource, ""})
	l.edit(f, Edit{Span{m.close, m.end}, "", NothingInCalls, ""})
	return true
}

// maxReport bounds the lines before a variable's line that are searched for the build ID of its
// module. The stacks of a report precede the variable.
const maxReport = 64

// matchLocation matches ThreadSanitizer's line about the variable of a race, whose module-relative
// address is at the given offset:
//
//	Location is global '??' at 0x55d0c0a00000 (inventory+0x40a8)
//	Location is global '<null>' at 0x55d0c0a040a8 (inventory+0x40a8)
//
// If a symbolizer has not found the variable ("??"), the address is the load base. Without a build
// ID in the line, an earlier frame of the module must have it.
func matchLocation(r *Reader, l *Line, at int) bool {
	const before, after = "Location is global '", "' at 0x"
	b := l.Text
	from := bytes.Index(b, []byte(before))
	if from < 0 || !standsFree(b, from) {
		return false
	}
	name := from + len(before)
	close := name + max(0, bytes.IndexByte(b[name:], '\''))
	if unknown := string(b[name:close]); unknown != "??" && unknown != "<null>" || !hasAt(b, close, after) {
		return false
	}
	addr, end, ok := hexAt(b, close+len(after))
	m, ok2 := r.modules.plus(b, end+1)
	if !ok || !ok2 || !hasAt(b, end, " (") || !onlyBlanks(b, m.end) || at > m.end || addr == 0 {
		return false
	}
	if m.id.IsZero() {
		m.id = r.idBefore(m.module)
	}
	if m.id.IsZero() {
		return false
	}
	if b[name] == '?' {
		addr += m.offset
	}
	f := l.frame()
	f.Module, f.ID, f.Kind, f.Value, f.Addr, f.Call, f.Data = m.module, m.id, Vaddr, m.offset, addr, Adjusted, true
	f.Start = from
	l.edit(f, Edit{Span{name, close}, "", Name, ""})
	l.edit(f, Edit{Span{close + 1, end}, "", Nothing, ""})
	return true
}

// idBefore returns the build ID of the module from an earlier frame of the report, or zero.
func (r *Reader) idBefore(module string) (id buildid.ID) {
	if r.Past == nil {
		return id
	}
	past := r.lastLines(maxReport)
	mark := []byte("(" + module + "+0x")
	for range maxReport {
		i := bytes.LastIndex(past, mark)
		if i < 0 {
			break
		}
		line, _, _ := bytes.Cut(past[i:], []byte("\n"))
		if m, ok := r.modules.plus(line, 0); ok && !m.id.IsZero() {
			return m.id
		}
		past = past[:i]
	}
	return id
}

// matchSummary matches the sanitizers' last line:
//
//	SUMMARY: AddressSanitizer: SEGV (/opt/shop/inventory+0x14a654) (BuildId: 55d0…)
func matchSummary(r *Reader, l *Line, at int) bool {
	b := l.Text
	mark := bytes.Index(b, []byte("SUMMARY: "))
	if mark < 0 || mark > at || !standsFree(b, mark) {
		return false
	}
	open := lastModule(b[:at], mark)
	if open < 0 {
		return false
	}
	m, ok := r.modules.plus(b, open)
	if !ok {
		return false
	}
	f := l.frame()
	f.Module, f.ID, f.Prefix, f.Kind, f.Value, f.Call = m.module, m.id, m.prefix, Vaddr, m.offset, Adjusted
	f.Number = 0 // the line repeats the first frame of the report
	if _, known := r.facts.Module(path.Base(m.module)); !known && m.module[0] == '/' {
		r.facts.touch(r.number) // ThreadSanitizer's frames have only the last part of the path
		r.facts.AddModule(ModuleFact{Name: m.module})
	}
	f.Start = mark
	f.Inline = Innermost
	name := Span{m.end, len(b)}
	if in := blanksAfter(b, m.end); hasAt(b, in, "in ") { // the function is known, but not the line
		name.To = len(bytes.TrimRight(b, " \t"))
	} else if !onlyBlanks(b, m.end) {
		return false
	}
	l.edit(f, Edit{Span{open, m.end}, "", AtSource, ""})
	l.edit(f, Edit{name, " in ", BareFunc, ""})
	return true
}

// numberBefore parses "#N " before the address at the given offset, and returns N and the Span of
// its digits. Exactly one blank must follow the digits, and "#" must be at the start of the line or
// after a blank.
func numberBefore(b []byte, at int) (n int, digits Span, ok bool) {
	if at < 3 || b[at-1] != ' ' {
		return 0, digits, false
	}
	n, from, ok := decimalBefore(b, at-1)
	if !ok || from < 1 || b[from-1] != '#' || from > 1 && b[from-2] != ' ' && b[from-2] != '\t' {
		return 0, digits, false
	}
	return n, Span{from, at - 1}, true
}

// lastModule returns the offset of the "(" before the module of a frame whose function begins at
// b[from], or -1. Functions and paths may contain brackets and blanks.
func lastModule(b []byte, from int) int {
	for _, mark := range moduleMarks {
		if open := lastMark(b, from, mark); open >= 0 {
			return open
		}
	}
	return -1
}

// moduleMarks are the texts before the modules of frames; the first text takes precedence.
var moduleMarks = [...]string{" (/", " ("}

// lastMark returns the offset of the "(" of the last mark in b[from:], or -1.
func lastMark(b []byte, from int, mark string) int {
	end := len(b)
	for {
		i := bytes.LastIndex(b[from:end], []byte(mark))
		if i < 0 {
			return -1
		}
		if open := from + i + 1; !hasAt(b, open, "(BuildId: ") {
			return open
		}
		end = from + i
	}
}

// lineMarks caches the results of lastMark for the current line, since several grammars and anchors
// of a line need them.
type lineMarks struct {
	from int // offset at which the cached search began; negative without one
	open [len(moduleMarks)]int
}

// lastModule is the function lastModule with cached results for the current line b. The cache is
// valid for searches that begin at or after the cached one, as most searches of a line do.
func (c *modules) lastModule(b []byte, from int) int {
	if m := &c.marks; m.from < 0 || m.from > from {
		m.from = from
		for i, mark := range moduleMarks {
			m.open[i] = lastMark(b, from, mark)
		}
	}
	for _, open := range c.marks.open {
		if open > from {
			return open
		}
	}
	return -1
}

// A place is a location in a module: (PATH+0xOFFSET) (BuildId: HEX).
type place struct {
	module string
	id     buildid.ID
	prefix buildid.ID // first bytes of an ID that is cut off at the end of the line
	offset uint64
	close  int // offset in the line after the first brackets
	end    int // offset in the line after the last brackets
}

// plus parses the location in a module whose "(" is at open.
func (c *modules) plus(b []byte, open int) (m place, ok bool) {
	if !hasAt(b, open, "(") {
		return m, false
	}
	limit := len(b)
	if i := bytes.Index(b[open:], []byte(" (BuildId: ")); i >= 0 {
		limit = open + i
	}
	close := bytes.LastIndexByte(b[open:limit], ')')
	if close < 0 {
		return m, false
	}
	close += open
	plus := hexBefore(b, close) - len("+0x")
	if plus <= open || !hasAt(b, plus, "+0x") || plus-open > maxPath {
		return m, false
	}
	if m.offset, _, ok = hexAt(b, plus+3); !ok {
		return m, false
	}
	name := b[open+1 : plus]
	if i := bytes.LastIndexByte(name, ':'); i > 0 && isArch(name[i+1:]) {
		name = name[:i]
	}
	if len(name) == 0 || name[0] == '<' {
		return m, false
	}
	m.module, m.close = c.name(name), close+1
	m.id, m.end, ok = c.idAfter(b, close+1)
	if m.id.IsZero() {
		if prefix, cut := cutIDAfter(b, close+1); cut {
			m.prefix, m.end, ok = prefix, len(b), true
		}
	}
	return m, ok
}

// isArch reports whether b is an architecture that may follow a module and ":", as on macOS.
func isArch(b []byte) bool {
	switch string(b) {
	case "x86_64", "x86_64h", "i386", "arm64", "arm64e", "armv7", "armv7s", "armv7k":
		return true
	}
	return false
}
