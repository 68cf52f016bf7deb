package dialect

import "bytes"

// A Dart program compiled with --dwarf-stack-traces, or by Flutter with --split-debug-info, prints
// stack traces in this form:
//
//	*** *** *** *** *** *** *** *** *** *** *** *** *** *** *** ***
//	pid: 4711, tid: 4730, name 1.ui
//	build_id: '3a0a920c3f1b7c55a0a1a2a3a4a5a6a7'
//	isolate_dso_base: 7a1b000000, vm_dso_base: 7a1b000000
//	    #00 abs 0000007a1b2c3d4e virt 00000000001d2c3d _kDartIsolateSnapshotInstructions+0x1a2b3d
//
// "abs" precedes the address of the call instruction in the process, "virt" its address in the ELF
// file. "virt" is missing if the file is not loaded as a library. Both may be missing.
var dart = Dialect{
	Name: "dart", Who: "Dart and Flutter: programs compiled ahead of time",
	Needs:  "the build ID before the frames, or --image FILE",
	Sample: "    #00 abs 0000007a1b2c3d4e virt 00000000001d2c3d _kDartIsolateSnapshotInstructions+0x1a2b3d",
}

const (
	// names of ModuleFacts about Dart programs; Text is the number of the line with the fact
	dartProgram = "program of Dart"
	dartLoaded  = "base of Dart"
	dartTrace   = "trace of Dart"
	dartLibrary = "libapp.so" // module of the frames: the file name of Flutter's library
)

// matchDart matches a frame whose distance from a symbol is at the given offset.
func matchDart(r *Reader, l *Line, at int) bool {
	const suspension = " <asynchronous suspension>"
	b := l.Text
	distance, end, ok := prefixedHex(b, at)
	from := bytes.LastIndexByte(b[:at], ' ') + 1
	if !ok || distance>>62 != 0 || !isDartSymbol(b[from:at-1]) || !onlyBlanks(b, end) && !hasAt(b, end, suspension) {
		return false
	}
	f := l.frame()
	f.Symbol = Symbol{Name: string(b[from : at-1]), Offset: int64(distance)}
	f.Kind, f.Value, f.Call = InSymbol, distance, Adjusted
	virt, from, hasVirt := wordedHex(b, from, "virt ")
	addr, from, hasAddr := wordedHex(b, from, "abs ")
	digits := 0
	if f.Number, digits, ok = decimalBefore(b, from-1); !ok || digits < 1 || b[digits-1] != '#' || b[from-1] != ' ' {
		return false
	}
	f.Start = digits - 1
	if !r.inTrace() {
		r.readPast()
	}
	program, loaded := r.ofDartTrace(dartProgram), r.ofDartTrace(dartLoaded)
	f.ID, f.Module = program.ID, dartLibrary
	switch {
	case hasVirt:
		if f.Kind, f.Value = Vaddr, virt; f.ID.IsZero() {
			f.Module = "" // the file of an --image without a name
		}
	case hasAddr && loaded.HasBase && addr > loaded.Base:
		f.Kind, f.Value = BaseOffset, addr-loaded.Base
	}
	if hasAddr {
		f.Addr = addr
	}
	l.edit(f, Edit{Span{end, end}, " ", Name, ""})
	l.edit(f, Edit{Span{end, end}, " ", AtColumn, ""})
	return true
}

// isDartSymbol reports whether name is the symbol of a program's code, or of Dart's own code.
func isDartSymbol(name []byte) bool {
	return string(name) == "_kDartIsolateSnapshotInstructions" || string(name) == "_kDartVmSnapshotInstructions"
}

// wordedHex parses the text before the given offset: word, a hexadecimal number and a blank. start
// is the offset of word. Without such text, start is the given offset.
func wordedHex(b []byte, at int, word string) (n uint64, start int, ok bool) {
	digits := hexBefore(b, max(at-1, 0))
	n, end, ok := hexAt(b, digits)
	if !ok || end != at-1 || !endsWith(b, at, " ") || !endsWith(b, digits, word) {
		return 0, at, false
	}
	return n, digits - len(word), true
}

// ofDartTrace returns the fact with this name, or the zero value if a trace has begun after the
// fact's line: the fact is then about another program. It compares line numbers, because past lines
// are not read in order.
func (r *Reader) ofDartTrace(name string) ModuleFact {
	m, _ := r.facts.Module(name)
	if trace, ok := r.facts.Module(dartTrace); ok && m.Text < trace.Text {
		return ModuleFact{}
	}
	return m
}

// addDart adds the fact m, with the number of the current line.
func (r *Reader) addDart(m ModuleFact) {
	m.Text = uint64(max(r.facts.at, 0))
	r.facts.AddModule(m)
}

// dartBegins records the line at which a trace begins. Facts from earlier lines are about another
// program.
func dartBegins(r *Reader, _ []byte, _ int) { r.addDart(ModuleFact{Name: dartTrace}) }

// dartBuild reads the program's build ID from a line that has "build_id: " at the given offset.
func dartBuild(r *Reader, b []byte, at int) {
	from := at + len("build_id: ")
	if hasAt(b, from, "'") {
		from++
	}
	if id, ok := r.modules.id(b[from:hexDigits(b, from)]); ok && !bytes.Contains(b[:at], []byte("loading_unit")) {
		r.addDart(ModuleFact{Name: dartProgram, ID: id})
	}
}

// dartBase reads the program's base from a line that has "isolate_dso_base: " at the given offset.
func dartBase(r *Reader, b []byte, at int) {
	if base, _, ok := hexAt(b, at+len("isolate_dso_base: ")); ok && base != 0 {
		r.addDart(ModuleFact{Name: dartLoaded, Base: base, HasBase: true})
	}
}
