package asis

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

// binutilsFlags are the flags of binutils' addr2line 2.40.
var binutilsFlags = [...]flag{
	{word: "--addresses", option: addresses}, {word: "-a", option: addresses},
	{word: "--basenames", option: basenames}, {word: "-s", option: basenames},
	{word: "--demangle", form: joined, option: demangle}, {word: "-C", option: demangle},
	{word: "--exe", form: either, option: objectFile}, {word: "-e", form: short, option: objectFile},
	{word: "--functions", option: functions}, {word: "-f", option: functions},
	{word: "--inlines", option: inlines}, {word: "-i", option: inlines},
	{word: "--pretty-print", option: pretty}, {word: "-p", option: pretty},
	{word: "--recurse-limit"}, {word: "--recursion-limit"}, {word: "-R"},
	{word: "--no-recurse-limit"}, {word: "--no-recursion-limit"}, {word: "-r"},
	{word: "--section", form: either, option: section}, {word: "-j", form: short, option: section},
	{word: "--target", form: either, option: target}, {word: "-b", form: short, option: target},
	{word: "--help", option: help}, {word: "-h", option: help}, {word: "-H", option: help},
	{word: "--version", option: version}, {word: "-v", option: version}, {word: "-V", option: version},
}

const binutilsUsage = `Usage: addr2line [option(s)] [addr(s)]
Options: -a -b TARGET -C[--demangle=STYLE] -e FILE -f -i -j SECTION -p -s @FILE
`

const binutilsHelp = binutilsUsage + `
Answers like addr2line of GNU Binutils 2.40, by symfilter. Without addresses,
reads them from standard input, and prints each answer at once.
symfilter help as lists the options, and what is refused.
`

func (p *Program) usage() string {
	if p.family == ofElfutils {
		return elfutilsUsage
	}
	return binutilsUsage
}

// setDemangle sets the demangling style. eu-addr2line demangles in any style.
func (l *Line) setDemangle(style string) {
	l.mangled = false
	if l.program.family == ofElfutils {
		return
	}
	switch style {
	case "", "auto", "gnu-v3", "rust":
	case "none":
		l.mangled = true
	case "java", "gnat", "dlang":
		l.errors = append(l.errors, printable(l.tool)+": --demangle="+style+": symfilter demangles names of C++ and Rust\n")
	default:
		l.errors = append(l.errors, printable(l.tool+": unknown demangling style `"+style+"'")+"\n")
	}
}

// A binutils answers as addr2line of binutils does, for one file.
type binutils struct {
	*Session
	location symbolize.Location
	own      *view // the file itself
	debug    *view // the debug file; nil if there is none
	searched bool  // debug was searched for
	last     lastSymbol
	section  int // the section of -j; 0: none
	// function names by Details.Entry; as in BFD, the first lookup in a function decides the name
	// for all later ones
	settled map[uint64]string
}

// maxSettled bounds the names in settled. Beyond that, each answer looks up the symbol again.
const maxSettled = 1 << 20

func (s *Session) runBinutils(in io.Reader) int {
	b := &binutils{Session: s, settled: make(map[uint64]string)}
	if ok, code := b.open(); !ok {
		return code
	}
	defer b.close()
	return s.runLines(in, b.answer)
}

// runLines answers the addresses of the command line, or else the lines of the input in. It returns
// the exit code.
func (s *Session) runLines(in io.Reader, answer func(line string)) int {
	if len(s.Questions) == 0 {
		return s.interactive(in, answer)
	}
	for _, line := range s.Questions {
		answer(line)
		if len(s.printer.out) >= chunk && s.flush() != nil {
			return exitFailed
		}
	}
	if s.flush() != nil {
		return exitFailed
	}
	return exitOK
}

// open opens the file. It reports a failure as binutils does, and returns the exit code.
func (b *binutils) open() (ok bool, code int) {
	fail := func(format string, args ...any) (bool, int) {
		fmt.Fprint(b.Err, printable(b.tool+": "+fmt.Sprintf(format, args...))+"\n")
		return false, exitFailed
	}
	info, err := statOf(b.file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fail("'%s': No such file", b.file)
	case err != nil:
		return fail("Warning: could not locate '%s'.  reason: %s", b.file, reasonOf(err))
	case info.IsDir():
		return fail("Warning: '%s' is a directory", b.file)
	case !info.Mode().IsRegular():
		return fail("Warning: '%s' is not an ordinary file", b.file)
	case info.Size() == 0:
		return false, exitFailed
	}
	if b.own, err = openView(b.file); err != nil {
		switch {
		case errors.Is(err, fs.ErrPermission):
			return fail("%s: %s", b.file, reasonOf(err))
		case isArchive(b.file):
			return fail("%s: cannot get addresses from archive", b.file)
		}
		return fail("%s: file format not recognized", b.file)
	}
	if b.target != "" && !isTarget(b.target) {
		b.own.close()
		return fail("%s: invalid bfd target", b.file)
	}
	if b.Line.section != "" {
		if b.section = b.own.named(b.Line.section); b.section == 0 {
			b.own.close()
			return fail("%s: cannot find section %s", b.file, b.Line.section)
		}
	}
	b.location.Name, err = filepath.Abs(b.file)
	return err == nil, exitFailed
}

func (b *binutils) close() {
	b.own.close()
	b.debug.close()
}

func statOf(path string) (fs.FileInfo, error) { return os.Stat(path) }

// reasonOf returns the text of an error as in C's strerror.
func reasonOf(err error) string {
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		text := no.Error()
		return strings.ToUpper(text[:1]) + text[1:]
	}
	return err.Error()
}

// isTarget reports whether name may be a format of files in BFD, judged by the part before the
// first hyphen. For ELF this is enough, since BFD tries all ELF formats, whatever the name.
func isTarget(name string) bool {
	family, _, _ := strings.Cut(name, "-")
	return slices.Contains([]string{"elf32", "elf64", "pei", "pe", "pdb", "srec", "symbolsrec", "verilog", "tekhex", "ihex", "plugin", "default"}, family)
}

// isArchive reports whether the file at path is a library of object files.
func isArchive(path string) bool {
	f, err := os.Open(path)
	if err != nil {
		return false
	}
	defer f.Close()
	var magic [8]byte
	f.ReadAt(magic[:], 0)
	return string(magic[:]) == "!<arch>\n"
}

func (b *binutils) answer(line string) {
	var pc uint64
	if err := object.Guard(func() { pc = b.address(line) }); err != nil {
		b.complain(b.file, err) // pc is 0, as for an unknown name
	}
	p := &b.printer
	if b.addresses {
		p.out = fmt.Appendf(p.out, "0x%0*x", b.own.digits, pc)
		if b.pretty {
			p.out = append(p.out, ": "...)
		} else {
			p.out = append(p.out, '\n')
		}
	}
	var all []place
	if err := object.Guard(func() { all = b.places(pc) }); err != nil {
		b.complain(b.file, err)
		all = nil
	}
	for i := range all {
		b.place(&all[i], i > 0)
	}
	if len(all) > 0 {
		return
	}
	switch {
	case b.named && b.pretty:
		p.out = append(p.out, "?? "...)
	case b.named:
		p.out = append(p.out, "??\n"...)
	}
	p.out = append(p.out, "??:0\n"...)
}

func (b *binutils) place(at *place, inlined bool) {
	p := &b.printer
	if b.pretty && inlined {
		p.out = append(p.out, " (inlined by) "...)
	}
	if b.named {
		name := at.function
		switch {
		case name == "":
			name = unknown
		case !b.mangled:
			name = b.demangled(name)
		}
		p.out = append(p.out, name...)
		if b.pretty {
			p.out = append(p.out, " at "...)
		} else {
			p.out = append(p.out, '\n')
		}
	}
	file := at.file
	if b.paths == onlyNames {
		file = file[strings.LastIndexByte(file, '/')+1:]
	}
	p.out = append(p.out, file...)
	switch {
	case at.line == 0:
		p.out = append(p.out, ":?"...)
	case at.discriminator != 0:
		p.count(":", uint64(at.line))
		p.count(" (discriminator ", uint64(at.discriminator))
		p.out = append(p.out, ')')
	default:
		p.count(":", uint64(at.line))
	}
	p.out = append(p.out, '\n')
}

// demangled returns the demangled form of name. As in BFD, leading dots and dollars and the version
// after @ remain.
func (b *binutils) demangled(name string) string {
	core := strings.TrimLeft(name, ".$")
	lead := name[:len(name)-len(core)]
	core, version, versioned := strings.Cut(core, "@")
	if versioned {
		version = "@" + version
	}
	shown := b.Symbolizer.Demangle(core)
	if shown == core {
		return name
	}
	return lead + gnuName(core, shown) + version
}

// places returns the frames that BFD finds at pc. With -j, pc is an offset in that section.
func (b *binutils) places(pc uint64) (all []place) {
	if b.section != 0 {
		if s := &b.own.sections[b.section]; s.Flags&elf.SHF_ALLOC != 0 && pc < s.Size {
			return b.nearest(b.section, pc)
		}
		return nil
	}
	for i := range b.own.sections {
		if s := &b.own.sections[i]; i > 0 && s.Flags&elf.SHF_ALLOC != 0 && pc >= b.own.base(s) && pc-b.own.base(s) < s.Size {
			if all = b.nearest(i, pc-b.own.base(s)); len(all) > 0 {
				return all
			}
		}
	}
	return nil
}

func (b *binutils) nearest(section int, offset uint64) []place {
	s := &b.own.sections[section]
	l := b.location
	l.Addr = offset + s.Addr
	var all []place
	if s.Flags&elf.SHF_EXECINSTR == 0 {
		if b.own.exact(section, offset) {
			if at, ok := b.variable(l); ok {
				all = []place{at}
			}
		} else {
			all = b.debugFrames(l)
		}
	} else {
		all = b.debugFrames(l)
	}
	b.findDebug()
	if len(all) == 0 || all[0].entry == 0 || !b.hasName(&all[0]) {
		all = b.nameBySymbol(all, section, offset)
	}
	for i := range all {
		if name, ok := b.settled[all[i].entry]; ok && all[i].entry != 0 {
			all[i].function = name
		}
		if !all[i].hasFile && all[i].file == "" {
			all[i].file = unknown
		}
	}
	if len(all) > 1 && !b.inlines {
		all = all[:1]
	}
	return all
}

// hasName reports whether BFD knows the function's name without looking it up in the symbol table.
func (b *binutils) hasName(at *place) bool {
	_, ok := b.settled[at.entry]
	return ok || at.linker
}

// nameBySymbol gives the first frame the name of BFD's symbol at an offset in a section. If all is
// empty, it returns one frame with the symbol's name and file, or none without a symbol.
func (b *binutils) nameBySymbol(all []place, section int, offset uint64) []place {
	v := b.own
	if b.debug != nil && b.debug.hasSame(b.own, section) {
		v = b.debug
	}
	sym := b.symbol(v, section, offset)
	if sym == nil && len(all) == 0 && v != b.own {
		sym = b.symbol(b.own, section, offset)
	}
	if sym == nil && len(all) == 0 {
		return nil
	}
	if len(all) == 0 {
		all = []place{{}}
	}
	at := &all[0]
	name := at.function
	if sym != nil {
		name = string(sym.name)
		if at.file == "" && !at.hasFile {
			at.file, at.hasFile = string(sym.file), sym.file != nil
		}
	}
	if at.entry != 0 && len(b.settled) < maxSettled {
		settled := at.function
		if sym != nil && sym.off+b.own.sections[section].Addr == at.start {
			settled = name
		}
		defer func(entry uint64) { b.settled[entry] = settled }(at.entry)
		at.entry = 0
	}
	at.function = name
	return all
}

// debugFrames returns the frames at l from debug information.
func (b *binutils) debugFrames(l symbolize.Location) []place {
	if err := b.ask(&question{module: l.Name}, l); err != nil {
		return nil
	}
	all := make([]place, 0, max(1, len(b.frames)))
	for i := range b.frames {
		f := &b.frames[i]
		if f.Details == nil {
			continue
		}
		at := place{function: f.Linkage, file: within(f.File, f.Details.Within), line: f.Line}
		// as in BFD, each frame has the discriminator of the innermost frame
		at.discriminator = b.frames[0].Details.Discriminator
		at.start = f.Details.First
		at.entry, at.linker = f.Details.Entry, f.Details.Linker
		if f.Details.Split { // BFD reads no split units
			at.function, at.entry = "", 0
			return append(all, at)
		}
		all = append(all, at)
	}
	return all
}

func within(file, dir string) string {
	if dir == "" {
		return file
	}
	return dir + "/" + file
}

// variable returns the place of the declaration of the variable at l.
func (b *binutils) variable(l symbolize.Location) (place, bool) {
	v, err := b.Symbolizer.AskData(b.Context, l, symbolize.Policy{})
	if err != nil && !errors.Is(err, symbolize.ErrNoSymbol) || v.Declared.Line == 0 {
		return place{}, false
	}
	return place{file: within(v.Declared.File, v.Declared.Within), line: v.Declared.Line}, true
}

// findDebug opens the debug file for its symbols, unless an earlier call has done so. It does
// nothing before the first lookup, since only a lookup finds the debug file.
func (b *binutils) findDebug() {
	if b.searched {
		return
	}
	r := b.Symbolizer.Report(buildid.ID{}, b.location.Name)
	if r.Path == "" {
		return
	}
	b.searched = true
	if r.Holds == symbolize.DebugInfo && r.Path != b.location.Name {
		b.debug, _ = openView(r.Path) // without a debug file, the file's own symbols are used
	}
}

// address returns the address in a line: a hexadecimal number, or a symbol with or without an
// offset. pc is 0 for an unknown symbol.
func (b *binutils) address(line string) (pc uint64) {
	line = strings.TrimLeft(line, blanks)
	if name, offset, ok := symbolic(line); ok {
		if addr, found := b.own.find(name, b.demangled); found {
			pc = addr + offset
		}
	} else {
		pc = hexPrefix(line)
	}
	if b.own.digits == 8 {
		pc = uint64(uint32(pc))
		if b.own.signed {
			pc = uint64(int64(int32(uint32(pc))))
		}
	}
	return pc
}

// symbolic splits a line into a symbol and an offset. If the line begins with a hexadecimal letter,
// it has a symbol only if it has a +. ok is false for other lines.
func symbolic(line string) (name string, offset uint64, ok bool) {
	if line == "" || line[0] == '-' || line[0] >= '0' && line[0] <= '9' || isHex(line[0]) && !strings.Contains(line, "+") {
		return "", 0, false
	}
	end := strings.IndexAny(line, blanks+"+")
	if end < 0 {
		return line, 0, true
	}
	name, line = line[:end], strings.TrimLeft(line[end:], blanks)
	rest, plus := strings.CutPrefix(line, "+")
	if !plus {
		return name, 0, line == ""
	}
	base, digits := baseOf(strings.TrimLeft(rest, blanks))
	for i := range len(digits) {
		n, ok := parseNumber(digits[i:i+1], base)
		if !ok {
			break
		}
		offset = offset*base + n
	}
	return name, offset, true
}

// hexPrefix returns the hexadecimal number at the beginning of a line; 0 if there is none.
func hexPrefix(line string) uint64 {
	if len(line) > 2 && line[0] == '0' && line[1]|0x20 == 'x' && isHex(line[2]) {
		line = line[2:]
	}
	end := 0
	for end < len(line) && isHex(line[end]) {
		end++
	}
	n, err := strconv.ParseUint(line[:end], 16, 64)
	if errors.Is(err, strconv.ErrRange) {
		return math.MaxUint64
	}
	return n
}

func isHex(c byte) bool { return bytes.IndexByte([]byte("0123456789abcdefABCDEF"), c) >= 0 }
