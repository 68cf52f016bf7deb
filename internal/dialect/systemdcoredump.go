package dialect

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/symfilter/symfilter/buildid"
)

// systemd-coredump makes traces from core dumps. It prints a header and the frames of a thread:
//
//	Stack trace of thread 4711:
//	#0  0x000055ef724be175 n/a (/opt/shop/inventory + 0x1175)
//	#3  0x00007f25058c713e _ZN6ledger4Book5closeEPFiiEi (libledger.so + 0x113e)
//
// The number in brackets is an offset from the load base: of the instruction in frame 0, of a
// return address in other frames. Before systemd 244 the brackets had only the module's name. The
// function is the innermost inlined call if the program had debug information. Modules are paths,
// or just names since systemd 252. eu-stack -b prints two lines for a frame:
//
//	#3  0x00007f25058c713e ledger::Book::close(int (*)(int), int)
//	    [c78d600963c1c7e9aac5494abbcca1a7594462a9]@0x7f25058c6000+0x113d
//
// The second line has the build ID and the offset, minus one in all frames except frame 0.
var (
	coredump = Dialect{
		Name: "systemd-coredump", Who: "systemd-coredump, in the journal and in coredumpctl info",
		Needs:  "the module's build ID in the entry, or its file: at the path, in the program's folder or in a system folder",
		Sample: "#1  0x00007f31c2a01154 n/a (/opt/shop/libledger.so + 0x1154)",
	}
	euStack = Dialect{
		Name: "eu-stack", Who: "eu-stack -b of elfutils",
		Needs:  "the build ID in the frame",
		Sample: "    [3a0a920c3f1b7c55]@0x7f31c2a00000+0x1153",
	}
)

// ErrEuStack is the reason why a frame of eu-stack without -b is not located.
var ErrEuStack = errors.New("eu-stack names no module; with -b it prints the build ID and the offset of each frame")

func matchCoredump(r *Reader, l *Line, at int) bool {
	b := l.Text
	const plus, deleted = " + 0x", " (deleted)"
	end := blanksBefore(b, len(b))
	if !endsWith(b, end, ")") {
		return false
	}
	digits := hexBefore(b, end-1)
	if !endsWith(b, digits, plus) {
		return false
	}
	number, start, ok := stackNumberBefore(b, at)
	if !ok {
		return false
	}
	offset, _, ok := hexAt(b, digits)
	addr, name, ok2 := prefixedHex(b, at)
	if !ok || !ok2 || !hasAt(b, name, " ") {
		return false
	}
	name++
	module, gone := bytes.CutSuffix(b[:digits-len(plus)], []byte(deleted))
	if name > len(module) {
		return false
	}
	open := bytes.LastIndex(module[name:], []byte(" (/"))
	if open < 0 {
		open = bytes.LastIndex(module[name:], []byte(" ("))
	}
	if open < 1 || len(module)-open > maxPath {
		return false
	}
	open += name
	if module = module[open+2:]; len(module) == 0 || string(module) == "n/a" {
		return false
	}
	f := l.frame()
	f.Number, f.Start = number, start
	f.Module, f.Deleted, f.Kind, f.Value, f.Addr = r.modules.name(module), gone, BaseOffset, offset, addr
	f.Call = Return
	if number == 0 {
		f.Call = Exact
	}
	l.edit(f, Edit{Span{name, open}, "", Rename, ""})
	l.edit(f, Edit{Span{end, end}, " ", AtLine, ""})
	return true
}

// matchOldCoredump matches a frame of systemd-coredump before version 244:
//
//	#1  0x00007f31c2a01154 ledger_audit (libledger.so)
func matchOldCoredump(r *Reader, l *Line, at int) bool {
	const digits = 16
	b := l.Text
	end := blanksBefore(b, len(b))
	if !endsWith(b, end, ")") {
		return false
	}
	number, start, ok := stackNumberBefore(b, at)
	addr, name, ok2 := prefixedHex(b, at)
	if !ok || !ok2 || name != at+len("0x")+digits || !hasAt(b, name, " ") {
		return false
	}
	name++
	open := bytes.LastIndex(b[:end], []byte(" ("))
	if open <= name {
		return false
	}
	module := b[open+len(" (") : end-1]
	if len(module) == 0 || len(module) > maxPath || bytes.ContainsAny(module, " /") || string(module) == "n/a" {
		return false
	}
	f := l.frame()
	f.Number, f.Start, f.Module = number, start, r.modules.name(module)
	f.Kind, f.Value, f.Addr, f.Call = Runtime, addr, addr, Return
	if number == 0 {
		f.Call = Exact
	}
	if function := string(b[name:open]); function != "n/a" {
		f.Symbol = Symbol{Name: function, Inside: true}
	}
	l.edit(f, Edit{Span{name, open}, "", Rename, ""})
	l.edit(f, Edit{Span{end, end}, " ", AtLine, ""})
	return true
}

// stackNumberBefore parses "#N " before the address at the given offset, with one or two blanks
// after N. It returns N and the offset of "#", which must be at the start of the line or after a
// blank.
func stackNumberBefore(b []byte, at int) (n, start int, ok bool) {
	blanks := blanksBefore(b, at)
	if at-blanks != 1 && at-blanks != 2 {
		return 0, 0, false
	}
	n, from, ok := decimalBefore(b, blanks)
	if !ok || from < 1 || b[from-1] != '#' {
		return 0, 0, false
	}
	if from--; from > 0 && b[from-1] != ' ' && b[from-1] != '\t' {
		return 0, 0, false
	}
	return n, from, true
}

// coredumpModule reads a module's build ID from a line of systemd-coredump before the frames:
//
//	Found module libledger.so with build-id: c78d6009…
//	Module libledger.so with build-id c78d6009…
//	Module libledger.so from deb shop-1.0, build-id=c78d6009…
//	Module /opt/shop/libledger.so, build-id=c78d6009…
//
// The text "build-id" is at the given offset.
func coredumpModule(r *Reader, b []byte, at int) {
	const before = "odule "
	from := bytes.Index(b[:at], []byte(before))
	digits := at + len("build-id")
	for digits < len(b) && bytes.IndexByte([]byte(": ="), b[digits]) >= 0 {
		digits++
	}
	if from < 0 || !onlyBlanks(b, hexDigits(b, digits)) {
		return
	}
	name, _, _ := bytes.Cut(b[from+len(before):at], []byte(" from "))
	name = bytes.TrimSuffix(bytes.TrimSuffix(name, []byte(", ")), []byte(" with "))
	id, ok := r.modules.id(b[digits:hexDigits(b, digits)])
	if len(name) == 0 || len(name) > maxPath || !ok {
		return
	}
	r.facts.AddModule(ModuleFact{Name: string(name), ID: id})
}

// coredumpProgram reads the program's path from the line of coredumpctl info, or from a journal
// field. The text before the path begins at the given offset.
func coredumpProgram(r *Reader, b []byte, at int) {
	i := bytes.IndexByte(b[at:], '/')
	if i < 0 || len(b)-at-i > maxPath || bytes.IndexAny(b[at:at+i], ":=") != i-1 && b[at+i-1] != ' ' {
		return
	}
	r.facts.addProgram(bytes.TrimRight(b[at+i:], " \t"))
}

// matchEuStack matches the second line of an eu-stack -b frame, whose base is at the given offset.
func matchEuStack(r *Reader, l *Line, at int) bool {
	b := l.Text
	if !endsWith(b, at, "]@") {
		return false
	}
	to := at - len("]@")
	from := hexBefore(b, to)
	base, end, ok := prefixedHex(b, at)
	if !ok || from < 1 || b[from-1] != '[' || !hasAt(b, end, "+0x") || onlyBlanks(b, 0) {
		return false
	}
	offset, end, ok := hexAt(b, end+len("+0x"))
	if !ok || !onlyBlanks(b, end) || !standsFree(b, from-1) {
		return false
	}
	id, ok := r.modules.id(b[from:to])
	if !ok {
		return false
	}
	f := l.frame()
	f.ID, f.Kind, f.Value, f.Addr, f.Call = id, BaseOffset, offset, base+offset, Adjusted
	if r.Past != nil { // the previous line has the number
		before := r.lastLines(1)
		if n, end, ok := decimalAt(before, bytes.IndexByte(before, '#')+1); ok && hasAt(before, blanksAfter(before, end), "0x") {
			f.Number = n
		}
	}
	f.Start = from - 1
	l.after(f, end)
	return true
}

// matchPlainEuStack matches a frame of eu-stack without -b:
//
//	#3  0x00007f25058c713e ledger::Book::close(int (*)(int), int)
//
// With -b the next line has its build ID, and with -s its source: see [Frame.Placed].
func matchPlainEuStack(r *Reader, l *Line, at int) bool {
	b := l.Text
	number, start, ok := stackNumberBefore(b, at)
	addr, end, ok2 := prefixedHex(b, at)
	name := Span{blanksAfter(b, end), len(bytes.TrimRight(b, " \t\r\n"))}
	if digits := end - at - len("0x"); !ok || !ok2 || digits != 16 && digits != 8 || name.From == end && end < len(b) || hasAt(b, name.From, "in ") || hasAt(b, name.From, "(") {
		return false
	}
	f := l.frame()
	f.Number, f.Start, f.Kind, f.Value, f.Addr, f.Call = number, start, Runtime, addr, addr, Return
	f.NoModule, f.PlaceBelow = ErrEuStack, true
	if number == 0 {
		f.Call = Exact
	}
	if name.From < name.To {
		if isAnswered(b[name.From:name.To]) {
			return false
		}
		f.Symbol = Symbol{Name: string(b[name.From:name.To]), Inside: true}
		l.edit(f, Edit{name, "", Rename, ""})
		l.edit(f, Edit{Span{name.To, name.To}, " ", AtLine, ""})
		return true
	}
	l.after(f, end)
	return true
}

// unstripModule matches a line of eu-unstrip -n. The module's base is before the given offset, its
// size at that offset:
//
//	0x7f25058c6000+0x4018 c78d6009…@0x7f25058c6248 /opt/shop/libledger.so - libledger.so
//
// The build ID, or "-", is followed by the paths of the file and of its debug file, and by the
// name. A path is "-" without a file, and "." if it equals the name.
func unstripModule(r *Reader, l *Line, at int) bool {
	b := l.Text
	from := hexBefore(b, at-1) - len("0x")
	base, end, ok := prefixedHex(b, max(from, 0))
	if from < 0 || !ok || end != at-1 || !standsFree(b, from) {
		return false
	}
	size, end, ok := prefixedHex(b, at)
	if !ok || !hasAt(b, end, " ") {
		return false
	}
	parts := bytes.SplitN(b[end+1:], []byte(" "), 4)
	if len(parts) != 4 || len(parts[3]) > maxPath {
		return false
	}
	digits, _, ok := bytes.Cut(parts[0], []byte("@0x"))
	if !ok {
		return false
	}
	m := ModuleFact{Name: string(parts[3]), Base: base, HasBase: true, End: base + size}
	if m.ID, ok = r.modules.id(digits); !ok || m.End < base {
		return false
	}
	if path := parts[1]; len(path) > 0 && path[0] == '/' {
		m.Name = string(path)
	}
	r.facts.touch(r.number)
	r.facts.AddModule(m)
	r.facts.AddMap(Map{Start: base, End: m.End, Path: m.Name, Code: true})
	return true
}

// AddPackages adds the build IDs of modules in text, the field COREDUMP_PACKAGE_JSON of
// systemd-coredump's journal entry:
//
//	{"elfType":"coredump","elfArchitecture":"AMD x86-64","libledger.so":{"type":"deb","buildId":"c78d6009…"}}
//
// Other text is ignored.
func (r *Reader) AddPackages(text []byte) {
	var modules map[string]json.RawMessage
	if json.Unmarshal(text, &modules) != nil {
		return
	}
	for name, raw := range modules {
		var module struct {
			BuildID string `json:"buildId"`
		}
		if json.Unmarshal(raw, &module) != nil {
			continue // elfType and elfArchitecture are strings
		}
		if id, err := buildid.Parse([]byte(module.BuildID)); err == nil {
			r.AddModule(ModuleFact{Name: name, ID: id})
		}
	}
}
