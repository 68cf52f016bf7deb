package asis

import (
	"debug/elf"
	"fmt"
	"io"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/symbolize"
)

const (
	ofLive = "needs a running kernel, a process or a core dump, which symfilter does not read; name the file with -e"
	ofRow  = "needs the flags of line tables, which symfilter does not read"
)

// elfutilsFlags are the flags of eu-addr2line 0.188.
var elfutilsFlags = [...]flag{
	{word: "--addresses", option: addresses}, {word: "-a", option: addresses},
	{word: "--absolute", option: absolutePaths}, {word: "-A", option: absolutePaths},
	{word: "--relative", option: relativeNames},
	{word: "--basenames", option: basenames}, {word: "-s", option: basenames},
	{word: "--demangle", form: joined, option: demangle}, {word: "-C", form: attached, option: demangle},
	{word: "--executable", form: either, option: objectFile}, {word: "-e", form: short, option: objectFile},
	{word: "--functions", option: functions}, {word: "-f", option: functions},
	{word: "--inlines", option: inlines}, {word: "-i", option: inlines},
	{word: "--pretty-print", option: pretty},
	{word: "--section", form: either, option: section}, {word: "-j", form: short, option: section},
	{word: "--symbols", option: symbolNames}, {word: "-S", option: symbolNames},
	{word: "--symbols-sections", option: symbolSections}, {word: "-x", option: symbolSections},
	{word: "--debuginfo-path", form: either, option: debugDir},
	{word: "--core", form: either, option: refused, reason: ofLive},
	{word: "--kernel", option: refused, reason: ofLive}, {word: "-k", option: refused, reason: ofLive},
	{word: "--offline-kernel", form: joined, option: refused, reason: ofLive}, {word: "-K", form: attached, option: refused, reason: ofLive},
	{word: "--linux-process-map", form: either, option: refused, reason: ofLive}, {word: "-M", form: short, option: refused, reason: ofLive},
	{word: "--pid", form: either, option: refused, reason: ofLive}, {word: "-p", form: short, option: refused, reason: ofLive},
	{word: "--flags", option: refused, reason: ofRow}, {word: "-F", option: refused, reason: ofRow},
	{word: "--help", option: help}, {word: "-?", option: help}, {word: "--usage", option: help},
	{word: "--version", option: version}, {word: "-V", option: version},
}

const (
	elfutilsUsage = "Try `eu-addr2line --help' or `eu-addr2line --usage' for more information.\n"
	elfutilsHelp  = `Usage: eu-addr2line [OPTION...] [ADDR...]
Options: -a -A -C -e FILE -f -i -j SECTION --pretty-print --relative -s -S -x
--debuginfo-path PATH

Answers like eu-addr2line of elfutils 0.188, by symfilter. Without addresses,
reads them from standard input, and prints each answer at once.
symfilter help as lists the options, and what is refused.
`
)

// An elfutils answers as eu-addr2line does, for one file.
type elfutils struct {
	*binutils
	low, high uint64 // addresses of the file's pages
	failed    bool   // the last line was not a question, or -i found no frames for it
}

func (s *Session) runElfutils(in io.Reader) int {
	e := &elfutils{binutils: &binutils{Session: s}}
	if !e.openFile() {
		return exitFailed
	}
	defer e.close()
	if code := e.runLines(in, e.answer); code != exitOK || !e.failed {
		return code
	}
	return exitFailed
}

// openFile opens the file. It reports a failure in the words of elfutils.
func (e *elfutils) openFile() bool {
	fail := func(reason string) bool {
		fmt.Fprintf(e.Err, "%s\n", printable(e.tool+": "+e.file+": "+reason))
		return false
	}
	var err error
	if e.own, err = openView(e.file); err != nil {
		if info, statErr := statOf(e.file); statErr != nil {
			return fail(reasonOf(statErr))
		} else if info.IsDir() {
			return fail("invalid file descriptor")
		}
		return fail("not a valid ELF file")
	}
	for _, p := range e.own.file.Segments() {
		if p.Type != elf.PT_LOAD {
			continue
		}
		mask := max(1, p.Align) - 1
		if e.high == 0 {
			e.low = p.Addr &^ mask
		}
		e.high = (p.Addr + p.MemSize + mask) &^ mask
	}
	e.location.Name, err = filepath.Abs(e.file)
	return err == nil
}

// answer prints the answer to the question in line. It prints nothing if line has no question.
func (e *elfutils) answer(line string) {
	var pc uint64
	var ok bool
	if err := object.Guard(func() { pc, ok = e.address(line) }); err != nil {
		e.complain(e.file, err)
	}
	if e.failed = !ok; e.failed {
		return
	}
	p := &e.printer
	if e.addresses {
		digits := 16
		if pc >= e.low && pc < e.high {
			digits = e.own.digits
		}
		p.out = fmt.Appendf(p.out, "0x%0*x", digits, pc)
		p.end(e.pretty, ": ")
	}
	if err := object.Guard(func() { e.places(pc) }); err != nil {
		e.complain(e.file, err)
	}
}

// end appends text if pretty is set, otherwise a line end.
func (p *printer) end(pretty bool, text string) {
	if pretty {
		p.out = append(p.out, text...)
	} else {
		p.out = append(p.out, '\n')
	}
}

func (e *elfutils) places(pc uint64) {
	l := e.location
	l.Addr = pc
	var frames []symbolize.Frame
	inside := pc >= e.low && pc < e.high
	if inside && e.ask(&question{module: l.Name}, l) == nil {
		frames = e.frames
	}
	e.findDebug()
	p := &e.printer
	if e.named && !e.function(frames) && !e.symbols {
		p.out = append(p.out, e.symbolName(pc, inside)...)
		p.end(e.pretty, " ")
	}
	if e.symbols {
		e.symbolOffset(pc, inside)
	}
	if e.pretty && (e.named || e.symbols) {
		p.out = append(p.out, "at "...)
	}
	e.source(frames, 0)
	e.failed = e.inlines && len(frames) == 0 // as in elfutils, which fails if it finds no unit
	for i := 1; e.inlines && i < len(frames); i++ {
		if e.pretty {
			p.out = append(p.out, " (inlined by) "...)
		}
		if e.named {
			p.out = append(p.out, e.shown(frames[i].Linkage)...)
			p.end(e.pretty, " at ")
		}
		e.source(frames, i)
	}
}

// function prints the innermost function and, without --pretty-print, the place where it was
// inlined. It returns false if a symbol's name must follow: after such a place, or if debug
// information has no function. In the second case it prints nothing.
func (e *elfutils) function(frames []symbolize.Frame) bool {
	if len(frames) == 0 || frames[0].Details == nil || frames[0].Details.Entry == 0 {
		return false
	}
	p := &e.printer
	p.out = append(p.out, e.shown(frames[0].Linkage)...)
	if len(frames) == 1 || e.pretty {
		p.end(e.pretty, " ")
		return true
	}
	p.out = append(p.out, " inlined"...)
	if call := &frames[1]; call.File != "" {
		name := e.sourcePath(call)
		switch {
		case call.Line == 0:
			p.out = append(append(p.out, " from "...), name...)
		default:
			p.out = append(append(p.out, " at "...), name...)
			p.count(":", uint64(call.Line))
			if call.Column != 0 {
				p.count(":", uint64(call.Column))
			}
		}
	}
	p.out = append(p.out, " in "...)
	return false
}

func (e *elfutils) source(frames []symbolize.Frame, i int) {
	p := &e.printer
	if i >= len(frames) || frames[i].File == "" {
		p.out = append(p.out, "??:0\n"...)
		return
	}
	f := &frames[i]
	p.out = append(p.out, e.sourcePath(f)...)
	p.count(":", uint64(f.Line))
	if f.Column != 0 {
		p.count(":", uint64(f.Column))
	}
	p.out = append(p.out, '\n')
}

// sourcePath returns the source path in the form of -s, -A or --relative.
func (e *elfutils) sourcePath(f *symbolize.Frame) string {
	switch {
	case e.paths == onlyNames:
		return path.Base(f.File)
	case e.paths == relativePaths && f.Dir != f.CompDir:
		return f.File[f.CompDir:]
	case e.paths == relativePaths:
		return f.File
	}
	dir := ""
	if f.Details != nil {
		dir = f.Details.Within
	}
	return within(f.File, dir)
}

// shown returns a function's name as elfutils prints it: only C++ names are demangled.
func (e *elfutils) shown(name string) string {
	switch {
	case name == "":
		return unknown
	case e.mangled || !strings.HasPrefix(name, "_Z"):
		return name
	}
	return gnuName(name, e.Symbolizer.Demangle(name))
}

func (e *elfutils) symbolName(pc uint64, inside bool) string {
	if inside {
		if sym := e.symbolsView().covering(pc); sym != nil {
			return e.shown(string(sym.name))
		}
	}
	return unknown
}

// symbolOffset prints the symbol that covers pc, the offset from it, and the section.
func (e *elfutils) symbolOffset(pc uint64, inside bool) {
	p := &e.printer
	v := e.symbolsView()
	var sym *sizedSymbol
	if inside {
		sym = v.covering(pc)
	}
	switch {
	case sym == nil && inside && e.own.file.Type == elf.ET_DYN:
		p.out = fmt.Appendf(p.out, "()+%s", hexNumber(pc))
	case sym == nil:
		p.out = append(p.out, unknown...)
	default:
		p.out = append(p.out, e.shown(string(sym.name))...)
		if off := pc - sym.addr; off != 0 {
			p.out = fmt.Appendf(p.out, "+%s", hexNumber(off))
		}
		if i := e.own.sectionUpTo(pc); e.sections && i > 0 {
			p.out = fmt.Appendf(p.out, " (%s)", e.own.sections[i].Name)
		}
	}
	p.end(e.pretty, " ")
}

// hexNumber formats n like %#x in C, which prints 0 without 0x.
func hexNumber(n uint64) string {
	if n == 0 {
		return "0"
	}
	return "0x" + strconv.FormatUint(n, 16)
}

// symbolsView returns the view whose symbols elfutils uses: the debug file if the file itself has
// no .symtab and there is a debug file, otherwise the file itself.
func (e *elfutils) symbolsView() *view {
	if e.debug != nil && !e.own.hasTable() {
		return e.debug
	}
	return e.own
}

// address reads a hexadecimal number, or a symbol with or without an offset. ok is false for other
// lines, and for numbers if -j is given. A missing symbol is also reported on standard error.
func (e *elfutils) address(line string) (pc uint64, ok bool) {
	text := strings.TrimLeft(line, blanks)
	digits, negative := strings.CutPrefix(text, "-")
	if !negative {
		digits = strings.TrimPrefix(text, "+")
	}
	if len(digits) > 2 && digits[0] == '0' && digits[1]|0x20 == 'x' {
		digits = digits[2:]
	}
	if n, valid := parseNumber(digits, 16); valid {
		if negative {
			n = -n
		}
		return n, e.section == 0 && e.Line.section == ""
	}
	end := strings.IndexAny(line, "+-")
	name, rest := line, ""
	if end >= 0 {
		name, rest = line[:end], line[end:]
	}
	if name == "" {
		return 0, false
	}
	offset := uint64(0)
	if rest != "" {
		base, digits := baseOf(rest[1:])
		n, valid := parseNumber(digits, base)
		if !valid {
			return 0, false
		}
		if offset = n; rest[0] == '-' {
			offset = -n
		}
	}
	e.findDebugFor()
	sym := e.symbolsView().symbolNamed(name)
	if sym == nil {
		fmt.Fprintf(e.Err, "%s: cannot find symbol '%s'\n", printable(e.tool), printable(name))
		return 0, false
	}
	if sym.size != 0 && offset >= sym.size {
		fmt.Fprintf(e.Err, "%s: offset %s lies outside contents of '%s'\n", printable(e.tool), hexNumber(offset), printable(name))
	}
	return sym.addr + offset, true
}

// findDebugFor searches for the debug file, unless a lookup has already done so.
func (e *elfutils) findDebugFor() {
	if !e.searched {
		l := e.location
		l.Addr = e.low
		e.ask(&question{module: l.Name}, l)
		e.findDebug()
	}
}
