package callgrind

import (
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/demangle"
	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// A physical is a function of the debug file, not of the profile. Several functions of the profile
// may have costs in its code.
type physical struct {
	object nameID
	shown  nameID // name as the output spells it
	link   nameID // the linker's name
	file   nameID
}

// A code holds the function and the lines at an address.
type code struct {
	fn     uint32 // 1 + the index of the physical function; 0 if unknown
	file   nameID // source file of the innermost inlined function
	line   uint32
	caller uint32 // line in the physical function
}

type location struct {
	object nameID
	addr   uint64
}

// symbols looks up addresses, and caches the results.
type symbols struct {
	r       *recordReader
	o       *Options
	objects objects
	mangled bool // the profile has mangled names
	below   bool // the profile uses one name for all callers of main

	physical []physical
	index    map[physical]uint32
	known    map[location]code
	frames   []symbolize.Frame
}

func newSymbols(r *recordReader, o *Options) *symbols {
	return &symbols{r: r, o: o, objects: newObjects(o.report(), r), index: make(map[physical]uint32), known: make(map[location]code)}
}

// maxKnown bounds the cached results.
const maxKnown = 1 << 20

func (s *symbols) codeAt(l location) code {
	if c, ok := s.known[l]; ok {
		return c
	}
	c := s.ask(l)
	if len(s.known) >= maxKnown {
		clear(s.known)
	}
	s.known[l] = c
	return c
}

func (s *symbols) ask(l location) (c code) {
	s.frames = s.objects.frames(s.frames[:0], s.objects.file(l.object), l.addr)
	if len(s.frames) == 0 {
		return code{}
	}
	inner, outer := &s.frames[0], &s.frames[len(s.frames)-1]
	if inner.HasLine {
		c.file, c.line = s.r.text([]byte(inner.File)), inner.Line
	}
	if outer.HasLine {
		c.caller = outer.Line
	}
	if outer.Func == "" {
		return c
	}
	p := physical{object: l.object, shown: s.r.text([]byte(s.spell(outer))), link: s.r.text([]byte(report.LinkName(outer))), file: s.r.text([]byte(outer.File))}
	n, ok := s.index[p]
	if !ok {
		if len(s.physical) >= maxFunctions {
			return c
		}
		s.physical = append(s.physical, p)
		n = uint32(len(s.physical))
		s.index[p] = n
	}
	c.fn = n
	return c
}

// spell returns a function's name in Valgrind's spelling, like the other names of the profile.
func (s *symbols) spell(f *symbolize.Frame) string {
	link := report.LinkName(f)
	switch {
	case s.below && report.IsBelowMain(link):
		return report.BelowMain
	case s.mangled || f.Func == f.Linkage: // not a mangled name, or mangled names are wanted
		return link
	}
	return demangle.GNU(link)
}

// entry parses Callgrind's name for an unknown function: the address of its entry. rest is the text
// after the address.
func entry(name string) (addr uint64, rest string, ok bool) {
	digits, ok := strings.CutPrefix(name, "0x")
	if !ok {
		return 0, "", false
	}
	rest = strings.TrimLeft(digits, "0123456789abcdefABCDEF")
	addr, err := strconv.ParseUint(digits[:len(digits)-len(rest)], 16, 64)
	return addr, rest, err == nil && (rest == "" || rest[0] == '\'' || strings.HasPrefix(rest, " ["))
}

// isCalled reports whether a name in the profile may be a name of p. The name may end with a
// version and a level of recursion.
func (s *symbols) isCalled(name string, p *physical) bool {
	for _, n := range []nameID{p.link, p.shown} {
		own := s.r.Text(n)
		if own == "" {
			continue
		}
		if rest, ok := strings.CutPrefix(name, own); ok && (rest == "" || rest[0] == '\'' || rest[0] == '@') {
			return true
		}
	}
	if len(name) > maxCompared {
		return false
	}
	shown := report.Closed(s.r.Text(p.shown))
	rest, ok := strings.CutPrefix(report.Closed(name), shown)
	return ok && (rest == "" || rest[0] == '\'' || rest[0] == '@')
}

// style infers two options of Valgrind from the names in a part, and keeps them for later
// parts. Mangled names show --demangle=no. Names such as _start show --show-below-main=yes.
func (s *symbols) style(m *model) {
	plain := false
	for _, f := range m.functions[1:] {
		name, _, _ := strings.Cut(m.r.Text(f.name), "'")
		s.mangled = s.mangled || report.IsMangled(name)
		s.below = s.below || name == report.BelowMain
		plain = plain || report.IsBelowMain(name)
	}
	s.below = s.below || !plain && strings.HasPrefix(m.head.creator, "callgrind")
}

// file returns the name of a source file as the report shows it.
func (s *symbols) file(n nameID) string { return s.o.report().ShownFile(s.r.Text(n)) }
