package asis

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/symbolize"
)

// A place is a frame in the form that other symbolizers print: a function with its file, line and
// declaration.
type place struct {
	function string // empty: unknown
	file     string // empty: unknown
	line     uint32
	column   uint32

	discriminator uint32
	declared      string // source file of the function's declaration
	declaredLine  uint32 // 0: not known
	start         uint64
	hasStart      bool

	entry   uint64 // see symbolize.Details
	linker  bool
	hasFile bool // file is known, even if it is empty
}

// A datum is the answer about a variable.
type datum struct {
	name        string
	start, size uint64
	file        string
	line        uint32
}

// place returns the frame f as a place. Its file is ofSymbol, the symbol's source file, if f has no
// file.
func (l *Line) place(f *symbolize.Frame, ofSymbol string) place {
	p := place{function: l.name(f.Func, f.Linkage), file: ofSymbol, line: f.Line, column: f.Column}
	if f.File != "" {
		p.file = l.path(f.File, f.CompDir, f.Dir)
	}
	if d := f.Details; d != nil {
		p.discriminator, p.start, p.hasStart = d.Discriminator, d.Start, d.HasStart
		p.declared, p.declaredLine = l.path(d.Declared.File, d.Declared.CompDir, d.Declared.Dir), d.Declared.Line
	}
	return p
}

// places returns the frames of an answer as places. Without a frame, it returns one empty place.
func (l *Line) places(frames []symbolize.Frame) []place {
	all := make([]place, 0, max(1, len(frames)))
	for i := range frames {
		all = append(all, l.place(&frames[i], frames[i].SymbolFile))
	}
	if len(all) == 0 {
		all = append(all, place{})
	}
	return all
}

// single returns the innermost frame, or an empty place if there are no frames. Unless gnu is set,
// the place gets the function of the outermost frame if that function comes from the symbol table.
func (l *Line) single(frames []symbolize.Frame, gnu bool) place {
	if len(frames) == 0 {
		return place{}
	}
	inner, outer := &frames[0], &frames[len(frames)-1]
	if gnu || !outer.FromSymbol {
		return l.place(inner, inner.SymbolFile)
	}
	p := l.place(inner, outer.SymbolFile)
	p.function = l.name(outer.Func, outer.Linkage)
	if d := outer.Details; d != nil {
		p.start, p.hasStart = d.Start, d.HasStart
	}
	return p
}

func (l *Line) datum(addr uint64, v *symbolize.Variable) datum {
	d := datum{name: l.name(v.Name, v.Linkage), file: v.Declared.File, line: v.Declared.Line}
	if d.name != "" {
		d.start, d.size = addr-v.Offset, v.Size
	}
	return d
}

func (l *Line) name(shown, linkage string) string {
	switch {
	case l.mangled || strings.HasPrefix(linkage, "__Z") || strings.HasPrefix(linkage, "____Z"):
		return linkage // LLVM does not demangle the names of macOS here
	case shown != linkage:
		shown, _, _ = strings.Cut(shown, "\x00") // in LLVM the name is a C string
	}
	return shown
}

// path returns a source path in the form l.paths. comp and dir are CompDir and Dir of a Frame.
func (l *Line) path(file string, comp, dir int) string {
	switch l.paths {
	case relativePaths:
		return file[comp:]
	case onlyNames:
		if name := file[dir:]; !strings.HasPrefix(name, "/") {
			return name[strings.LastIndexByte(name, '/')+1:]
		}
		return file[dir:]
	}
	return file
}

// A printer appends answers to out, as text or JSON.
type printer struct {
	*Line
	out []byte
}

const unknown = "??"

func (p *printer) header(q *question) {
	if p.addresses && q.hasAddr {
		p.out = strconv.AppendUint(append(p.out, "0x"...), q.addr, 16)
		if p.pretty {
			p.out = append(p.out, ": "...)
		} else {
			p.out = append(p.out, '\n')
		}
	}
}

func (p *printer) footer() {
	if p.style == styleLLVM {
		p.out = append(p.out, '\n')
	}
}

// code prints an answer about code. If chain is true, each place was inlined into the next one.
func (p *printer) code(q *question, all []place, chain bool) {
	p.header(q)
	for i := range all {
		p.place(&all[i], chain && i > 0)
	}
	p.footer()
}

func (p *printer) place(at *place, inlined bool) {
	if p.Names != symbolize.NoNames {
		if p.pretty && inlined {
			p.out = append(p.out, " (inlined by) "...)
		}
		p.out = append(p.out, cmp.Or(at.function, unknown)...)
		if p.pretty {
			p.out = append(p.out, " at "...)
		} else {
			p.out = append(p.out, '\n')
		}
	}
	file := cmp.Or(at.file, unknown)
	if p.verbose {
		p.details(at, file)
		return
	}
	p.out = append(p.out, file...)
	p.count(":", uint64(at.line))
	switch {
	case p.style == styleLLVM:
		p.count(":", uint64(at.column))
	case at.discriminator != 0:
		p.count(" (discriminator ", uint64(at.discriminator))
		p.out = append(p.out, ')')
	}
	p.out = append(p.out, '\n')
	p.out = appendSource(p.out, file, int64(at.line), p.context)
}

func (p *printer) count(text string, n uint64) {
	p.out = strconv.AppendUint(append(p.out, text...), n, 10)
}

// details prints the lines of --verbose.
func (p *printer) details(at *place, file string) {
	p.out = append(append(p.out, "  Filename: "...), file...)
	if at.declaredLine != 0 {
		p.out = append(append(p.out, "\n  Function start filename: "...), at.declared...)
		p.count("\n  Function start line: ", uint64(at.declaredLine))
	}
	if at.hasStart && p.style == styleLLVM {
		p.out = strconv.AppendUint(append(p.out, "\n  Function start address: 0x"...), at.start, 16)
	}
	p.count("\n  Line: ", uint64(at.line))
	p.count("\n  Column: ", uint64(at.column))
	if at.discriminator != 0 {
		p.count("\n  Discriminator: ", uint64(at.discriminator))
	}
	p.out = append(p.out, '\n')
}

func (p *printer) data(q *question, d *datum) {
	p.header(q)
	p.out = append(p.out, cmp.Or(d.name, unknown)...)
	p.count("\n", d.start)
	p.count(" ", d.size)
	if d.file == "" {
		p.out = append(p.out, "\n??:?\n"...)
	} else {
		p.out = append(append(p.out, '\n'), d.file...)
		p.count(":", uint64(d.line))
		p.out = append(p.out, '\n')
	}
	p.footer()
}

// noLocals prints the answer about a function without local variables.
func (p *printer) noLocals(q *question) {
	p.header(q)
	p.out = append(p.out, "??\n"...)
	p.footer()
}
