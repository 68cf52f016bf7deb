package dialect

import "bytes"

// NVIDIA's compute-sanitizer, and its predecessor cuda-memcheck, print the calls of the host
// program as
//
//	=========     Host Frame:settle(int) [0x1154]
//	=========                in /opt/shop/inventory
//	=========         Host Frame: [0x1154] in libledger.so
//	=========     Host Frame:/opt/shop/libledger.so (ledger_audit + 0x16) [0x1154]
//	=========     Host Frame:main in main.cu:12 [0x6e6f]
//
// The number in brackets is the offset of a return address from the load base. A frame that has a
// line, like the last one, is unchanged. In the first form, the module is on the next line, and the
// answer follows the module.
var cuda = Dialect{
	Name: "compute-sanitizer", Who: "NVIDIA's compute-sanitizer, cuda-memcheck",
	Needs:  "the file at the path, or --image",
	Sample: "=========     Host Frame:/opt/shop/libledger.so [0x1154]",
}

const (
	hostFrame  = "Host Frame:"
	hostMargin = "=========" // start of each line
)

type hostPlace struct {
	function, module []byte
	offset           uint64
	start            int // offset of "Host Frame:"
	name, open, end  int // offsets of the function, of " [0x", and after "]"
}

// hostPlaceIn parses a line with a host frame, whose offset in brackets begins at the given index
// of b.
func hostPlaceIn(b []byte, at int) (p hostPlace, ok bool) {
	p.start = bytes.Index(b[:at], []byte(hostFrame))
	if p.start < 0 || !hasAt(b, 0, hostMargin) || b[at-1] != '[' || b[at-2] != ' ' && b[at-2] != ':' {
		return p, false
	}
	p.name = blanksAfter(b, p.start+len(hostFrame))
	p.open = max(p.name, at-len(" ["))
	p.function = b[p.name:p.open]
	if p.offset, p.end, ok = prefixedHex(b, at); !ok || !hasAt(b, p.end, "]") {
		return p, false
	}
	p.end++
	if hasAt(b, p.end, " in ") {
		p.module = bytes.TrimRight(b[p.end+len(" in "):], " \t")
		return p, len(p.module) > 0 && len(p.module) <= maxPath
	}
	return p, onlyBlanks(b, p.end)
}

func matchHostFrame(r *Reader, l *Line, at int) bool {
	p, ok := hostPlaceIn(l.Text, at)
	if !ok {
		return false
	}
	if i := bytes.LastIndex(p.function, []byte(" in ")); i >= 0 && isAnswered(p.function) {
		return false
	}
	if p.module != nil {
		f := r.modules.hostFrame(l, &p, p.module, p.start)
		place := Span{p.open, p.open}
		if len(p.function) > 0 {
			l.edit(f, Edit{place, " in ", AtLine, ""})
		} else {
			l.edit(f, Edit{place, "", Name, " "})
			l.edit(f, Edit{place, "in ", AtLine, " "})
		}
		return true
	}
	module := p.function
	if i := bytes.LastIndex(module, []byte(" (")); i > 0 && module[len(module)-1] == ')' {
		name, offset, plus := bytes.Cut(module[i+len(" ("):len(module)-1], []byte(" + 0x"))
		if n, end, ok := hexAt(offset, 0); plus && ok && end == len(offset) && n>>62 == 0 && isPath(module) {
			p.function, module = name, module[:i]
		}
	}
	if len(module) == 0 || !isPath(module) {
		r.open(windowCuda, r.number) // the module is on the next line
		return true
	}
	if len(module) == len(p.function) {
		p.function = nil
	}
	l.after(r.modules.hostFrame(l, &p, module, p.start), p.end)
	return true
}

func (c *modules) hostFrame(l *Line, p *hostPlace, module []byte, start int) *Frame {
	f := l.frame()
	f.Module, f.Kind, f.Value, f.Call, f.Start = c.name(module), BaseOffset, p.offset, Return, start
	if len(p.function) > 0 {
		f.Symbol = Symbol{Name: string(p.function), Inside: true}
	}
	return f
}

// matchHostModule matches a line with the module of the frame on the previous line.
func matchHostModule(r *Reader, l *Line, _ int) bool {
	b := l.Text
	in := blanksAfter(b, len(hostMargin))
	if !hasAt(b, 0, hostMargin) || !hasAt(b, in, "in ") || r.Past == nil {
		return false
	}
	from, to := in+len("in "), len(bytes.TrimRight(b, " \t"))
	before := r.before()
	open := bytes.LastIndex(before, []byte("[0x"))
	if from >= to || to-from > maxPath || open < 1 || len(before) > maxLine || isAnswered(b[from:to]) || isNamed(b[from:to]) {
		return false
	}
	p, ok := hostPlaceIn(before, open+1)
	if !ok || p.module != nil || isAnswered(p.function) {
		return false
	}
	l.after(r.modules.hostFrame(l, &p, b[from:to], in), to)
	return true
}

// isNamed reports whether a name follows a library's path, as in symfilter's answer without a line.
func isNamed(b []byte) bool {
	i := bytes.LastIndex(b, []byte(".so"))
	return i >= 0 && bytes.HasPrefix(bytes.TrimLeft(b[i+len(".so"):], ".0123456789"), []byte(" "))
}
