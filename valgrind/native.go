package valgrind

import (
	"bytes"
	"iter"
	"strings"

	"github.com/symfilter/symfilter/internal/report"
	"github.com/symfilter/symfilter/symbolize"
)

// A namer adds the symbolizer's names to frames, spelled as Valgrind does with debug
// information. A function has its demangled linkage name, and an inlined call its bare name in
// the source.
type namer struct {
	o       *report.Options
	t       *tracker
	answers *answerer
	sites   []site // sites of the current stack
}

func newNamer(o *Options, t *tracker) *namer {
	return &namer{o: o.report(), t: t, answers: t.answers}
}

// all yields the sites of a stack, with the symbolizer's frames if these improve on the report's.
// Before the first site, it starts the search for the debug files of all sites without a line.
func (n *namer) all(stack []Frame) iter.Seq2[*site, []symbolize.Frame] {
	return func(yield func(*site, []symbolize.Frame) bool) {
		n.sites = n.t.appendSites(n.sites[:0], stack)
		for i := range n.sites {
			if s := &n.sites[i]; s.at != nil && lacksLine(s) {
				n.answers.Prefetch(s.at.of.file.Object)
			}
		}
		for i := range n.sites {
			if !yield(&n.sites[i], n.answerOf(&n.sites[i])) {
				return
			}
		}
	}
}

// lacksLine reports whether a site is a single frame without file and line.
func lacksLine(s *site) bool {
	f := &s.frames[0]
	return len(s.frames) == 1 && f.Line == 0 && f.File == nil && f.Dir == nil
}

// answerOf returns the symbolizer's frames for a site, if they improve on the report's frames. It
// also counts named and unresolved sites.
func (n *namer) answerOf(s *site) []symbolize.Frame {
	last := &s.frames[len(s.frames)-1]
	var why error
	if s.at != nil && lacksLine(s) {
		got := n.answers.answerFor(s)
		if got.improvesOn(s) {
			n.t.missing.Named++
			return got.frames
		}
		why = got.err
	} else if s.at == nil {
		_, why = n.t.cur.whyUnplaced(last)
	}
	if last.Fn == nil && last.File == nil {
		n.t.countUnresolved(s, why)
	}
	return nil
}

// learnOption records an option of Valgrind that changes its output.
func (p *process) learnOption(option []byte) {
	switch {
	case bytes.HasPrefix(option, []byte(leakErrorsOption)):
		p.leakErrors = p.keepText(option[len(leakErrorsOption):])
	case string(option) == "-q", string(option) == "--quiet":
		p.quiet = true
	case bytes.HasPrefix(option, []byte("--demangle=")):
		p.mangled = string(option) == "--demangle=no"
	case bytes.HasPrefix(option, []byte("--show-below-main=")):
		p.belowMain = string(option) == "--show-below-main=yes"
	}
}

func (n *namer) function(f *symbolize.Frame) string {
	if f.Inlined {
		return spaced(report.BareName(f.Func))
	}
	link := report.LinkName(f)
	if name, is := replacedName(link); is {
		return name
	}
	switch {
	// glibc's symbol has no type, so Valgrind ignores it
	case link == "__restore_rt":
		return ""
	case !n.t.cur.belowMain && report.IsBelowMain(link) && link != "_start":
		return report.BelowMain
	case n.t.cur.mangled && link != "":
		return link
	}
	return spaced(report.FuncName(n.o.Symbolizer, f))
}

// spaced returns a demangled name as Valgrind spells it: with a blank between the closing
// brackets of templates.
func spaced(name string) string {
	if !strings.Contains(name, ">>") {
		return name
	}
	b := make([]byte, 0, len(name)+8)
	for i := range len(name) {
		if name[i] == '>' && i > 0 && name[i-1] == '>' && !bytes.HasSuffix(b, []byte("operator>")) {
			b = append(b, ' ')
		}
		b = append(b, name[i])
	}
	return string(b)
}

// describe adds the name of a variable to a text about its address, since Valgrind does not find
// the name in a stripped program. The first of these texts becomes the second:
//
//	Address 0x10e168 is in the BSS segment of /bin/app
//	Address 0x10e168 is 0 bytes inside data symbol "plain"
func (n *namer) describe(text []byte) []byte {
	address, rest, ok := bytes.Cut(text, []byte(" is in the "))
	if !ok || !bytes.HasPrefix(address, []byte("Address 0x")) || !bytes.Contains(rest, []byte(" segment of ")) {
		return text
	}
	addr, ok := report.Hex(address[len("Address 0x"):])
	if !ok {
		return text
	}
	v, ok := n.answers.variable(n.t, addr)
	if !ok {
		return text
	}
	name := v.Linkage
	if name == "" {
		name = v.Name
	}
	n.t.missing.Named++
	described := append(bytes.Clone(address), " is "...)
	return append(append(append(appendDecimal(described, v.Offset), ` bytes inside data symbol "`...), name...), '"')
}
