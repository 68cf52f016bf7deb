package llvmfilter

import "bytes"

// lineOf filters one line, with its line end.
func (f *Filter) lineOf(line []byte) {
	f.line, f.echoed = line, 0
	f.crlf = bytes.HasSuffix(line, []byte("\r\n"))
	f.resetColor()
	if e, ok := firstContextual(line); ok {
		f.context(&e)
	} else {
		f.endModule()
		f.parts(line)
	}
	f.line = nil
	if len(f.out) >= chunk || len(f.diagnostics) >= chunk {
		f.send()
	}
}

func firstContextual(line []byte) (e element, ok bool) {
	for at := 0; ; at = e.end {
		if e, ok = nextElement(line, at); !ok || e.contextual() {
			return e, ok
		}
	}
}

// parts prints the parts of b, the current line or its beginning: text, colours, and elements that
// are not contextual.
func (f *Filter) parts(b []byte) {
	for at := 0; at < len(b); {
		e, ok := nextElement(b, at)
		if !ok {
			f.text(b[at:])
			return
		}
		f.text(b[at:e.start])
		f.element(b, &e)
		at = e.end
	}
}

// element prints the text that replaces an element of the line.
func (f *Filter) element(line []byte, e *element) {
	if !e.wellNamed() {
		f.complain("tags must be all lowercase characters", e.start+len(opening))
		return
	}
	switch string(e.tag) {
	case "symbol":
		f.symbol(e)
	case "pc":
		f.pc(e)
	case "bt":
		f.bt(e)
	case "data":
		f.data(e)
	default:
		f.print(line[e.start:e.end])
	}
}

// raw prints an unresolved element, with brackets in place of its braces.
func (f *Filter) raw(e *element) {
	f.highlight()
	f.out = append(f.out, "[[["...)
	f.value(e.tag)
	rest := e.rest
	for range e.fields {
		var one []byte
		one, rest, _ = bytes.Cut(rest, colon)
		f.out = append(f.out, ':')
		f.value(one)
		if len(f.out) >= chunk {
			f.send()
		}
	}
	f.out = append(f.out, "]]]"...)
	f.restoreColor()
}

// endLine ends an added line with the line end of the current line.
func (f *Filter) endLine() {
	if f.crlf {
		f.out = append(f.out, '\r')
	}
	f.out = append(f.out, '\n')
}
