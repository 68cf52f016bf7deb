package valgrind

import (
	"bytes"
	"strings"

	"github.com/symfilter/symfilter/report"
	"github.com/symfilter/symfilter/symbolize"
)

// A native gives functions the names that Valgrind prints if it finds the debug information itself:
// the name that the linker knows, demangled, and for inlined calls the bare name of the source.
type native struct {
	o *report.Options
	t *tracker
}

// learnOption takes an option of Valgrind's command line.
func (p *process) learnOption(option []byte) {
	switch {
	case bytes.HasPrefix(option, []byte(leakErrorsOption)):
		p.leakErrors = p.keepText(option[len(leakErrorsOption):])
	case bytes.HasPrefix(option, []byte("--demangle=")):
		p.mangled = string(option) == "--demangle=no"
	case bytes.HasPrefix(option, []byte("--show-below-main=")):
		p.belowMain = string(option) == "--show-below-main=yes"
	}
}

// function returns the name of the function of a frame; empty if it has none.
func (n *native) function(f *symbolize.Frame) string {
	if f.Inlined {
		return bareName(f.Func)
	}
	link := report.LinkName(f)
	if name, is := replacedName(link); is {
		return name
	}
	switch {
	case !n.t.cur.belowMain && report.IsBelowMain(link) && link != "_start":
		return report.BelowMain
	case n.t.cur.mangled && link != "":
		return link
	}
	return report.FuncName(n.o.Symbolizer, f)
}

// bareName returns the name that the declaration of a function has, from its demangled one: without
// scopes, parameters and the type of the result, but with the arguments of a template.
//
//	std::vector<int>::size() const    size
//	int ns::most<int>(int, int)       most<int>
func bareName(demangled string) string {
	name := demangled
	if i := strings.Index(name, "operator"); i >= 0 && (i == 0 || !isName(name[i-1])) {
		return operatorName(name[i:])
	}
	begin, end, depth := 0, len(name), 0
scan:
	for i := 0; i < len(name); i++ {
		switch c := name[i]; c {
		case '<':
			depth++
		case '>':
			depth--
		case '(':
			if depth > 0 {
				depth++
				break
			}
			if rest := name[i:]; strings.HasPrefix(rest, "(anonymous namespace)") {
				i += len("(anonymous namespace)") - 1
				break
			}
			end = i
			break scan
		case ')':
			depth--
		case ' ', ':':
			if depth == 0 {
				begin = i + 1
			}
		case '[':
			if depth == 0 && i > begin { // an ABI tag: f[abi:cxx11]
				end = i
				break scan
			}
		}
	}
	if begin >= end {
		return demangled
	}
	return name[begin:end]
}

// operatorName returns the name of an operator without its parameters.
func operatorName(name string) string {
	const call = "operator()"
	if strings.HasPrefix(name, call) {
		return call
	}
	if i := strings.IndexByte(name, '('); i > 0 {
		return name[:i]
	}
	return name
}
