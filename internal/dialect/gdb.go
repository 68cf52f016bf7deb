package dialect

import "bytes"

// gdb's bt prints a frame without debug information in one of these forms:
//
//	#1  0x000055ef724be189 in ?? ()
//	#2  0x00007f25058c711b in ?? () from /opt/shop/libledger.so
//	#3  0x00007f25058c713e in ledger::Book::close(int (*)(int), int) () from /opt/shop/libledger.so
//	#4  <signal handler called>
//
// Frame 0 and the frame after a signal handler have an instruction's address, and other frames a
// return address. Frames in the program name no file. The output of "info proc mappings" and "info
// sharedlibrary" shows where modules were loaded.
var gdb = Dialect{
	Name: "gdb", Who: "gdb's bt, as in reports of Apport and DrKonqi",
	Needs:  "the file at the path, and either named frames, info sharedlibrary or info proc mappings; for the program itself, info proc mappings or no ASLR",
	Sample: "#2  0x00007f31c2a01154 in ?? () from /opt/shop/libledger.so",
}

func matchGDB(r *Reader, l *Line, at int) bool {
	b := l.Text
	number, start, ok := stackNumberBefore(b, at)
	if !ok {
		return false
	}
	if number <= r.gdb.frame { // another stack
		r.gdb.frame = -1
	}
	addr, end, ok := prefixedHex(b, at)
	const in, args, from = " in ", " ()", " () from /"
	if !ok || !hasAt(b, end, in) {
		return false
	}
	name := Span{From: end + len(in)}
	if end = len(bytes.TrimRight(b, " \t\r")); end < name.From {
		return false
	}
	var module []byte
	if i := bytes.LastIndex(b[name.From:end], []byte(from)); i > 0 {
		name.To = name.From + i
		module = b[name.To+len(from)-1 : end]
	} else if name.To = end - len(args); name.To <= name.From || !hasAt(b, name.To, args) {
		if end > name.From && !r.inPast {
			r.openUntil(windowGDB, r.number+1)
		}
		return false
	}
	if so := bytes.Index(module, []byte(".so")); len(module) > maxPath || so >= 0 && bytes.IndexByte(module[so:], ' ') >= 0 {
		return false // the line already has its answer, after the path
	}
	f := r.gdbFrame(l, number, addr, b[name.From:name.To], module)
	f.Start = start
	l.edit(f, Edit{name, "", Rename, ""})
	l.edit(f, Edit{Span{name.To + len(args), name.To + len(args)}, " at ", AtLine, ""})
	return true
}

// gdbFrame adds a frame, without edits. If module is nil, the frame is in the program, or its
// module is on the next line: see [Frame.Continue].
func (r *Reader) gdbFrame(l *Line, number int, addr uint64, name, module []byte) *Frame {
	f := l.frame()
	f.Number = number
	f.Module, f.Program, f.Wraps = r.modules.name(module), module == nil, module == nil
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Return
	if string(name) != "??" {
		f.Symbol = Symbol{Name: string(name), Inside: true}
	}
	if f.Program {
		f.Usual = PlainBase
	}
	if number == 0 || r.afterSignal(number) {
		f.Call = Exact
	}
	return f
}

// matchGDBWrapped matches the end of a frame that gdb has wrapped at the terminal's width. The
// previous line has its number, address and function:
//
//	#3  0x00007ffff7fbc189 in ledger::audit(ledger::Pool<ledger::Order, 8u>&, int)
//	    () from /opt/shop/libledger.so
//
// The module may be on another line: see [Frame.Continue].
func matchGDBWrapped(r *Reader, l *Line, _ int) bool {
	const args = "()"
	b := l.Text
	open := bytes.Index(b, []byte("    "+args))
	if open < 0 || r.Past == nil || r.inPast {
		return false
	}
	open += len("    ")
	module, ok := wrappedModule(b[open+len(args):])
	if !ok && !onlyBlanks(b, open+len(args)) {
		return false
	}
	before := bytes.TrimRight(r.lastLines(1), " \t\r\n")
	in := bytes.Index(before, []byte(" in "))
	if in < 0 {
		return false
	}
	at := hexBefore(before, in) - len("0x")
	addr, end, ok := prefixedHex(before, max(at, 0))
	if !ok || end != in {
		return false
	}
	number, start, ok := stackNumberBefore(before, at)
	if !ok || blanksBefore(b, open) != start {
		return false
	}
	name := before[in+len(" in "):]
	f := r.gdbFrame(l, number, addr, name, module)
	f.Start = start
	if f.Symbol.Name == "" {
		l.edit(f, Edit{Span{open, open}, "", Func, " "})
	}
	l.edit(f, Edit{Span{open + len(args), open + len(args)}, " at ", AtLine, ""})
	return true
}

// wrappedModule returns the library's path in "   from /opt/shop/libledger.so", the end of a frame.
func wrappedModule(b []byte) (path []byte, ok bool) {
	at := blanksAfter(b, 0)
	const from = "from /"
	if at == 0 || !hasAt(b, at, from) {
		return nil, false
	}
	path = bytes.TrimRight(b[at+len(from)-1:], " \t\r\n")
	return path, len(path) <= maxPath
}

// Continue sets the module of f if gdb has wrapped the frame. next is the line after f's; it may
// have the text "from /opt/shop/libledger.so".
func (f *Frame) Continue(next []byte) {
	if !f.Wraps || len(next) < f.Start {
		return
	}
	if path, ok := wrappedModule(WithoutColors(next[f.Start:])); ok {
		f.Module, f.Program, f.Usual = string(path), false, 0
	}
}

// afterSignal reports whether gdb has printed a signal handler as the frame before frame n.
func (r *Reader) afterSignal(n int) bool {
	if !r.Wants(r.number) {
		r.readPast()
	}
	return r.gdb.isBefore(n, r.number)
}

// A gdbSignal identifies the last frame that gdb has printed as a signal handler.
type gdbSignal struct {
	frame int   // number of the frame; -1 if there is none, or if it is in another stack
	at    int64 // line of the frame
}

// isBefore reports whether the handler is the frame directly before frame n. line is the number of
// the line with frame n.
func (s *gdbSignal) isBefore(n int, line int64) bool {
	if s.frame == anyFrame {
		return line == s.at+1
	}
	return n > 0 && s.frame == n-1 && line-s.at < WindowLines
}

// anyFrame represents the unknown number of a frame that KDE's DrKonqi has replaced with "[KCrash
// Handler]".
const anyFrame = -2

func crashHandler(r *Reader, _ []byte, _ int) { r.gdb.frame, r.gdb.at = anyFrame, r.facts.at }

// gdbHandler records the frame "#N <signal handler called>", whose "<" is at the given offset.
func gdbHandler(r *Reader, b []byte, at int) {
	if n, _, ok := stackNumberBefore(b, at); ok {
		r.gdb.frame, r.gdb.at = n, r.facts.at
	}
}

// gdbThread reads the line before another thread's stack: "Thread 2 (LWP 4712):". It forgets an
// earlier signal handler, which belongs to another thread.
func gdbThread(r *Reader, _ []byte, _ int) {
	if r.facts.at > r.gdb.at {
		r.gdb.frame = -1
	}
}

// gdbProgram returns a header before the program's path, or the name by which it was called:
//
//	Reading symbols from /opt/shop/inventory...
//	Core was generated by `./inventory --port 80'.
//
// The first form is ignored for debug files, and for libraries, whose names contain ".so".
func gdbProgram(text string) header {
	return header{text: text, fact: func(r *Reader, b []byte, at int) { gdbProgramAt(r, b, at+len(text)) }}
}

func gdbProgramAt(r *Reader, b []byte, at int) {
	path := b[at:]
	if dots := bytes.Index(path, []byte("...")); dots >= 0 {
		if bytes.Contains(path[:dots], []byte(".so")) || hasAt(path, dots-len(".debug"), ".debug") {
			return
		}
		path = path[:dots]
	} else if end := bytes.IndexAny(path, " '"); end >= 0 {
		path = path[:end]
	}
	if len(path) > 0 && len(path) <= maxPath {
		r.facts.addProgram(path)
	}
}

// gdbMap matches an entry of "info proc mappings", whose start address is at the given offset:
//
//	0x7ffff7fbc000     0x7ffff7fbd000     0x1000     0x1000  r-xp   /opt/shop/libledger.so
//
// The mode is missing for cores, and before gdb 12: then gdbMap takes each mapping for code.
func gdbMap(r *Reader, l *Line, at int) bool {
	b := l.Text
	if !onlyBlanks(b[:at], 0) {
		return false
	}
	var n [4]uint64
	ok := false
	for i := range n {
		if n[i], at, ok = prefixedHex(b, at); !ok || !hasAt(b, at, " ") {
			return false
		}
		at = blanksAfter(b, at)
	}
	m := Map{Start: n[0], End: n[1], Offset: n[3], Code: true}
	if m.End-m.Start != n[2] || n[2] == 0 {
		return false
	}
	if len(b)-at > 5 && isMode(b[at:]) {
		m.Code = b[at+2] == 'x'
		at = blanksAfter(b, at+4)
	}
	path := bytes.TrimRight(b[at:], " \t\r")
	if cut, deleted := bytes.CutSuffix(path, []byte(" (deleted)")); deleted {
		path, m.Deleted = cut, true
	}
	if len(path) > 0 && path[0] == '/' && len(path) <= maxPath {
		m.Path = string(path)
	}
	r.facts.touch(r.number)
	r.facts.AddMap(m)
	return true
}

// gdbLibrary matches an entry of "info sharedlibrary", whose start address is at the given offset:
//
//	0x00007f25058c7050  0x00007f25058c716e  Yes (*)     /opt/shop/libledger.so
//
// The first address is the start of the section .text.
func gdbLibrary(r *Reader, l *Line, at int) bool {
	b := l.Text
	if !onlyBlanks(b[:at], 0) {
		return false
	}
	start, at, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, at, "  0x") {
		return false
	}
	_, at, ok = prefixedHex(b, at+2)
	if !ok || !hasAt(b, at, "  ") {
		return false
	}
	at = blanksAfter(b, at)
	if !hasAt(b, at, "Yes ") && !hasAt(b, at, "No ") {
		return false
	}
	path := bytes.IndexByte(b[at:], '/')
	if path < 0 || len(b)-at-path > maxPath {
		return false
	}
	r.facts.touch(r.number)
	r.facts.AddModule(ModuleFact{Name: string(bytes.TrimRight(b[at+path:], " \t\r")), Text: start})
	return true
}
