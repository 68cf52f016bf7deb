package dialect

import (
	"bytes"
	"strings"
)

// Many programs print the frames of glibc's backtrace_symbols and backtrace_symbols_fd after their
// own text:
//
//	/opt/shop/libledger.so(ledger_audit+0x16) [0x7f31c2a01154]
//	/opt/shop/inventory(+0x13cb)[0x55d0c0a013cb]
//	./inventory() [0x40137f]
//	/opt/shop/inventory[0x40137f]
//	[0x7f31c2a01154]
//
// Without a name the number in parentheses is an offset from the load base. All addresses are
// return addresses, except after a signal. The executable has the name by which it was called, or
// the title that its process has set: "redis-server *:6379(moduleLoad+0xa9)[0x…]".
var glibc = Dialect{
	Name: "glibc", Who: "glibc's backtrace_symbols: Redis, PostgreSQL, MySQL, MariaDB, Ceph, Samba, OpenMPI, V8, Godot and many others; mtrace; libexecinfo",
	Needs:  "the file at the path, or --image",
	Sample: "/opt/shop/libledger.so(+0x1154) [0x7f31c2a01154]",
}

// firstAddress is the lowest address at which dialects of C programs expect code. Linux maps
// nothing below 64 KiB (vm.mmap_min_addr), so smaller numbers are indexes or sizes.
const firstAddress = 0x10000

// matchCLibrary matches an address in brackets, as mtrace and glibc print it, or a distance of
// libexecinfo: +0x24.
func matchCLibrary(r *Reader, l *Line, at int) bool {
	if l.Text[at-1] == '+' {
		return matchExecinfo(r, l, at)
	}
	return matchBracketed(r, l, at)
}

var matchBracketed = anyOf(matchMtrace, matchGlibc)

// matchGlibc matches a frame whose address in brackets begins at the given offset.
func matchGlibc(r *Reader, l *Line, at int) bool {
	b := l.Text
	addr, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, "]") || addr < firstAddress {
		return false
	}
	end++
	unknown, ok := placeOfGodot(b, end)
	if !ok && !onlyBlanks(b, end) {
		return false
	}
	f := l.frame()
	f.Addr, f.Call, f.Kind, f.Value = addr, Return, Runtime, addr
	to, group, parsed := r.symbolOfGlibc(f, b, at)
	if !parsed || !r.moduleOfGlibc(f, b, to, group) {
		return false
	}
	f.Process = processIn(b[:f.Start])
	f.baseOfGodot(b[:f.Start])
	if r.exactFrame(f) {
		f.Call = Exact
	}
	if ok {
		l.edit(f, Edit{Span{end, end}, " ", Name, ""})
		l.edit(f, Edit{unknown, "", AtLine, ""})
		return true
	}
	l.after(f, len(bytes.TrimRight(b, " \t")))
	return true
}

// placeOfGodot returns the Span of "??:0" or "??:?" in " (??:0)" at the end of a line. Godot prints
// these texts for an unknown file and line.
func placeOfGodot(b []byte, at int) (unknown Span, ok bool) {
	open := blanksAfter(b, at)
	if open != at+1 || !hasAt(b, open, "(??:0)") && !hasAt(b, open, "(??:?)") {
		return unknown, false
	}
	unknown = Span{open + 1, open + 5}
	return unknown, onlyBlanks(b, unknown.To+1)
}

// baseOfGodot sets the offset of f in its module, if f has none and Godot has printed the offset
// before glibc's text:
//
//	[1] 55d0c0a013cb (main+13cb) - ./godot() [0x55d0c0a013cb]
func (f *Frame) baseOfGodot(before []byte) {
	const end = ") - "
	digits := hexBefore(before, max(len(before)-len(end), 0))
	open := bytes.LastIndex(before[:digits], []byte(" ("))
	if f.Kind != Runtime || !endsWith(before, len(before), end) || !endsWith(before, digits, "+") || open < 0 {
		return
	}
	offset, _, ok := hexAt(before, digits)
	addr, _, ok2 := hexAt(before, hexBefore(before, open))
	if ok && ok2 && addr == f.Addr {
		f.Kind, f.Value = BaseOffset, offset
	}
}

// symbolOfGlibc parses the parentheses before the address at the given offset, and returns the end
// of the path before them. group is set if there are parentheses.
func (r *Reader) symbolOfGlibc(f *Frame, b []byte, at int) (to int, group, ok bool) {
	to = at - 1
	if to > 0 && b[to-1] == ' ' {
		to--
	}
	if to <= 0 || b[to-1] != ')' {
		if to < at-1 {
			to++ // a blank, so not a path: "path[0x…"
		}
		return to, false, true
	}
	open := openingOf(b, to-1)
	if open < 0 || r.glibc.resolved(b[:open], b[open+1:to-1], r.number) {
		return to, true, false
	}
	return open, true, f.inParentheses(b[open+1 : to-1])
}

// moduleOfGlibc sets the field Start and the module of f, from the path at the end of b[:to]. It
// returns false if the text is not a frame.
func (r *Reader) moduleOfGlibc(f *Frame, b []byte, to int, group bool) bool {
	f.Start = pathBefore(b, to)
	if to > 1 && b[to-1] == ' ' && bytes.IndexByte([]byte(":]|"), b[to-2]) >= 0 { // a log prefix
		f.Start = to
		// compute-sanitizer prints an offset in the module on the next line
		if endsWith(b, to, "Host Frame: ") {
			return false
		}
	}
	name := b[f.Start:to]
	switch {
	case len(name) > maxPath:
		return false
	case len(name) == 0:
		return r.mayLackModule(f, group)
	}
	last := name[len(name)-1]
	if last == ' ' || last == '\t' {
		return false
	}
	// "name[0x…]" may be an element of an array
	if !group && !isPath(name) && (!isWord(last) || !r.inTrace()) {
		return false
	}
	path, deleted := bytes.CutSuffix(name, []byte(" (deleted)"))
	f.Module, f.Deleted = r.modules.name(path), deleted
	return true
}

// mayLackModule reports whether f may be a frame although its line has no module. f must have no
// name, and outside of a trace no parentheses. In a trace, or directly after a line with an address
// in brackets at the same offset, f is a frame. Elsewhere, f must be at the start of the line
// unless Firmware is set. f.Optional is then set, since only the file can show whether f is a
// frame.
func (r *Reader) mayLackModule(f *Frame, group bool) bool {
	near := r.inTrace()
	if f.Symbol.Name != "" || group && !near {
		return false
	}
	if !near && !r.addressBefore(f.Start) {
		f.Optional = true
		return f.Start == 0 || r.Firmware
	}
	return true
}

// A glibcFault records that the next glibc frame is the location of a fault. Its fields are line
// numbers.
type glibcFault struct {
	exactAfter int64 // line before the frame; 0: none
	dumpAt     int64 // last line at which a program began to print its registers
}

// openingOf returns the offset of the "(" for the ")" at close, or -1. A demangled name may contain
// parentheses.
func openingOf(b []byte, close int) int {
	depth := 0
	for i := close; i >= 0; i-- {
		switch b[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 {
				return i
			}
		}
	}
	return -1
}

// inParentheses parses the text between the path and the address: SYMBOL+0xOFFSET, SYMBOL-0xOFFSET,
// +0xOFFSET, or nothing.
func (f *Frame) inParentheses(b []byte) bool {
	if len(b) == 0 {
		return true
	}
	name, n, ok := offsetAtEnd(b)
	if !ok {
		return false
	}
	if len(name) == 0 {
		f.Kind, f.Value = BaseOffset, uint64(n)
		return true
	}
	f.Symbol = Symbol{Name: string(name), Offset: n}
	return true
}

// offsetAtEnd parses NAME+0xOFFSET or NAME-0xOFFSET, up to the end of b.
func offsetAtEnd(b []byte) (name []byte, offset int64, ok bool) {
	digits := hexBefore(b, len(b))
	if digits < 3 || !hasAt(b, digits-2, "0x") {
		return nil, 0, false
	}
	n, _, ok := hexAt(b, digits)
	sign := b[digits-3]
	if !ok || n>>62 != 0 || sign != '+' && sign != '-' {
		return nil, 0, false
	}
	if offset = int64(n); sign == '-' {
		offset = -offset
	}
	return b[:digits-3], offset, true
}

// isPath reports whether name is a path rather than a process title.
func isPath(name []byte) bool {
	return name[0] == '/' || hasAt(name, 0, "./") || hasAt(name, 0, "../")
}

// pathBefore returns the start of the path or process title at the end of b[:end]. The text before
// it is a prefix of the log or the program.
func pathBefore(b []byte, end int) (start int) {
	word := bytes.LastIndexAny(b[:end], " \t") + 1
	if word < end && isPath(b[word:end]) {
		return word
	}
	for i := word + 1; i < end; i++ {
		if b[i] == '/' && bytes.IndexByte([]byte(`;=|>"'`), b[i-1]) >= 0 {
			return i
		}
	}
	// the text before cut is certainly a prefix; "#012" is a line end in a record of rsyslog
	cut := 0
	for _, mark := range []string{"]: ", " | ", "#012"} {
		if i := bytes.LastIndex(b[:end], []byte(mark)); i >= 0 {
			cut = max(cut, i+len(mark))
		}
	}
	// a path with blanks, or a title that starts with a path
	for i := end; i > cut; {
		if i = bytes.LastIndexByte(b[cut:i], '/') + cut; i < cut {
			break
		}
		if i == cut || b[i-1] == ' ' || b[i-1] == '\t' {
			return i
		}
	}
	return titleStart(b, cut, end)
}

// titleStart returns the start of the process title in b[start:end]. It skips numbers and bracketed
// texts by the program or the log, such as "[host:pid] [ 3] ", " 3: " and " #3 ". "#011" is a TAB
// in rsyslog.
func titleStart(b []byte, start, end int) int {
	b = b[:end]
	for {
		start = blanksAfter(b, start)
		at := start
		switch {
		case hasAt(b, at, "#011"):
			start += 4
			continue
		case hasAt(b, at, "["):
			n := bytes.IndexByte(b[at:], ']')
			if n < 0 {
				return start
			}
			at += n + 1
		case hasAt(b, at, "#"):
			_, at, _ = decimalAt(b, at+1)
		case hasAt(b, at, "frame #"): // printed by PyTorch
			if _, at, _ = decimalAt(b, at+len("frame #")); hasAt(b, at, ":") {
				at++
			}
		default:
			var ok bool
			if _, at, ok = decimalAt(b, at); !ok || !hasAt(b, at, ":") && !hasAt(b, at, ".") {
				return start
			}
			at++
		}
		if !hasAt(b, at, " ") {
			return start
		}
		start = at
	}
}

// processIn returns the process ID in the text before a frame, or 0. OpenMPI prints the ID in
// "[node07:04711]", and a system log in "redis-server[4711]:".
func processIn(b []byte) uint64 {
	for at := 0; ; {
		i := bytes.IndexByte(b[at:], '[')
		if i < 0 {
			return 0
		}
		open := at + i
		close := bytes.IndexByte(b[open:], ']')
		if close < 0 {
			return 0
		}
		at = open + close
		id, from, ok := decimalBefore(b, at)
		host := b[open+1 : max(open+1, from-1)]
		if ok && (from == open+1 && open > 0 && isWord(b[open-1]) || b[from-1] == ':' && len(host) > 0 && isWord(host[0]) && !isDigit(host[0]) && bytes.IndexByte(host, ' ') < 0) {
			return uint64(id)
		}
	}
}

// resolved reports whether a frame already has its file and line, as in MariaDB:
//
//	libc_sigaction.c:0(__restore_rt)[0x7f31c2a01154]
//
// After __restore_rt, resolved marks the next frame as the location of a fault, since a signal has
// interrupted it.
func (g *glibcFault) resolved(place, function []byte, line int64) bool {
	_, from, ok := decimalBefore(place, len(place))
	if !ok || from == 0 || place[from-1] != ':' || len(function) == 0 || bytes.Contains(function, []byte("+0x")) {
		return false
	}
	if g.exactAfter = 0; string(function) == "__restore_rt" {
		g.exactAfter = line
	}
	return true
}

// exactFrame reports whether earlier lines of the report identify f as the location of the fault.
// They do so only for the first frame after them.
func (r *Reader) exactFrame(f *Frame) bool {
	if !r.inTrace() {
		r.readPast()
	}
	exact := r.glibc.exactAfter > 0 && r.number-r.glibc.exactAfter <= 2
	r.glibc.exactAfter = 0
	// if libSegFault does not find the frame of the fault, the trace begins with its own frames
	return exact && !strings.Contains(f.Module, "libSegFault")
}

// announcesFault reads a line of Redis with only "EIP:". It marks the next frame as the location of
// the fault.
func announcesFault(r *Reader, b []byte, at int) {
	if onlyBlanks(b, at+len("EIP:")) {
		r.glibc.exactAfter = r.facts.at
	}
}

// dumpsRegisters records that a dump of registers begins. In reports by libSegFault, the first
// frame after the next "Backtrace:" is then the location of the fault.
func dumpsRegisters(r *Reader, _ []byte, _ int) { r.glibc.dumpAt = r.facts.at }

const maxDump = 64 // lines of registers printed by libSegFault or the kernel

// beginsBacktrace reads the line "Backtrace:". Shortly after a dump of registers, it marks the next
// frame as the location of the fault.
func beginsBacktrace(r *Reader, b []byte, at int) {
	if after := r.facts.at - r.glibc.dumpAt; r.glibc.dumpAt > 0 && after > 0 && after < maxDump && onlyBlanks(b, at+len("Backtrace:")) {
		r.glibc.exactAfter = r.facts.at
	}
}

// redisModule reads Redis's line with the name and base of the faulting module:
//
//	Module: redis-server *:6379 (base 0x55d0c0a00000)
func redisModule(r *Reader, b []byte, at int) {
	const mark = " (base 0x"
	name, base, ok := bytes.Cut(b[at+len("Module: "):], []byte(mark))
	addr, end, ok2 := hexAt(base, 0)
	if ok && ok2 && hasAt(base, end, ")") && len(name) > 0 && len(name) <= maxPath {
		r.facts.AddModule(ModuleFact{Name: string(name), Base: addr, HasBase: true})
	}
}
