package filter

import (
	"bytes"
	"encoding/binary"
	"strconv"

	"github.com/symfilter/symfilter/markup"
)

// linePieces prints the line whose pieces are at work.
func (f *Filter) linePieces(eol []byte) {
	var contextual, presented int
	var last *piece // the last presentation element
	f.first = -1
	f.steps += int64(len(f.pieces))
	for i := range f.pieces {
		p := &f.pieces[i]
		if p.Err != nil {
			f.diagnose(p.Err.Off, p.Err.Error())
		}
		if p.Kind != markup.Elem {
			continue
		}
		if f.first < 0 {
			f.first = i
		}
		switch p.Tag {
		case markup.TagReset, markup.TagModule, markup.TagMMap:
			contextual++
		case markup.TagPC, markup.TagBT, markup.TagData, markup.TagSymbol, markup.TagHexDict:
			presented++
			last = p
		}
	}
	if contextual > 0 {
		f.contextual(eol)
		return
	}
	f.closeModule()
	if presented == 1 && last.Tag == markup.TagBT && f.standsAlone(last) {
		f.backtraceLine(last, eol)
		return
	}
	for i := range f.pieces {
		if p := &f.pieces[i]; p.Kind == markup.Elem {
			f.presentation(p)
			f.sendLarge()
		} else {
			f.text(p)
		}
	}
	f.endLine(eol)
}

// standsAlone reports whether an element, the only presentation element of
// its line or a hexdict, stands behind a log prefix or nothing, and not in a
// sentence: a sentence's text before it ends in a lower-case letter or a
// comma, or begins with the "SUMMARY: " of the sanitizers ("SUMMARY:
// AddressSanitizer: SEGV").
func (f *Filter) standsAlone(element *piece) bool {
	sentence := false
	for i := range f.pieces {
		p := &f.pieces[i]
		if p == element {
			break
		}
		f.steps += int64(1 + len(p.Raw))
		if p.Kind != markup.Text {
			continue
		}
		if bytes.Contains(p.Raw, []byte("SUMMARY: ")) {
			return false
		}
		if t := bytes.TrimRight(p.Raw, " \t"); len(t) > 0 {
			c := t[len(t)-1]
			sentence = 'a' <= c && c <= 'z' || c == ','
		}
	}
	return !sentence
}

// presentation prints an element within a line.
func (f *Filter) presentation(p *piece) {
	switch p.Tag {
	case markup.TagBT:
		if e, err := p.bt(); err == nil {
			a := f.code(e.Addr, lookupOfFrame(e))
			f.sentence(a)
			f.recordAnswer(p.Tag, int64(e.Frame), e.Addr, a)
			return
		}
	case markup.TagPC:
		if e, err := p.pc(); err == nil {
			a := f.code(e.Addr, lookupOf(e.Kind))
			if a.mod == nil {
				f.bracketed(p)
			} else {
				f.location(a)
			}
			f.recordAnswer(p.Tag, 0, e.Addr, a)
			return
		}
	case markup.TagData:
		if e, err := p.data(); err == nil {
			a := f.data(e.Addr)
			f.variable(a, p)
			f.recordAnswer(p.Tag, 0, e.Addr, a)
			return
		}
	case markup.TagSymbol:
		if e, err := p.symbol(); err == nil {
			shown := f.demangle(e.Name)
			f.mark(shown)
			f.recordTag(p.Tag, "name", e.Name, "demangled", shown)
			return
		}
	case markup.TagHexDict:
		if e, err := p.dict(); err == nil {
			d := openDict{body: []byte(e.Body)}
			if f.first >= 0 && p == &f.pieces[f.first] { // any other has no prefix, and to find that out for each would be quadratic
				d.prefix = f.prefixOf(p)
			}
			f.footnotes(&d)
		}
	case markup.TagDumpFile:
		if e, err := p.dump(); err == nil {
			f.dump(e)
			f.recordTag(p.Tag, "type", e.Type, "name", e.Name)
		}
	}
	f.asItCame(p)
}

func (f *Filter) demangle(name string) string {
	if f.o.Symbolizer != nil {
		name = f.o.Symbolizer.Demangle(name)
	}
	return clean(name)
}

// backtraceLine prints a line with a backtrace element that stands alone: a
// line for each inlined call and one for the frame itself, each with what
// stood before the element and behind it.
func (f *Filter) backtraceLine(bt *piece, eol []byte) {
	start := len(f.out)
	at := 0
	for &f.pieces[at] != bt {
		at++
	}
	behind := at + 1
	f.textOf(f.pieces[:at])
	e, err := bt.bt()
	if err != nil {
		f.asItCame(bt)
		f.textOf(f.pieces[behind:])
		f.endLine(eol)
		return
	}
	a := f.code(e.Addr, lookupOfFrame(e))
	f.recordAnswer(bt.Tag, int64(e.Frame), e.Addr, a)
	if !a.knows || len(a.text.cuts) == 1 {
		f.frame(e.Frame, a, 0)
		f.textOf(f.pieces[behind:])
		f.endLine(eol)
		return
	}
	f.inlinedLines(e.Frame, a, start, behind, eol)
}

// inlinedLines prints a frame with inlined calls. out[start:] is what stood
// before the element, f.pieces[behind:] stood behind it; long text is not
// repeated.
func (f *Filter) inlinedLines(number uint64, a *answer, start, behind int, eol []byte) {
	var before []byte
	if len(f.out)-start <= maxRepeat {
		before = append(f.before[:0], f.out[start:]...)
		f.before = before
	}
	after := 0
	for i := behind; i < len(f.pieces); i++ {
		after += len(f.pieces[i].Raw)
	}
	between := eol
	if len(between) == 0 {
		between = newline
	}
	state, cur := f.state, f.cur
	last := len(a.text.cuts) - 1
	for i := range a.text.cuts {
		if i > 0 {
			f.out = append(f.out, before...)
			f.state = state
			if len(before) > 0 {
				f.cur = cur
			}
		}
		f.frame(number, a, i)
		if i == last {
			f.textOf(f.pieces[behind:])
			f.endLine(eol)
			return
		}
		if after <= maxRepeat {
			f.textOf(f.pieces[behind:])
		}
		f.nextLine(between)
		f.sendLarge()
	}
}

// textOf prints pieces of which none is to be resolved.
func (f *Filter) textOf(pieces []piece) {
	for i := range pieces {
		if p := &pieces[i]; p.Kind == markup.Elem {
			f.asItCame(p)
		} else {
			f.text(p)
		}
	}
}

// frame prints the i-th frame of an answer in the layout of a backtrace line:
//
//	#0.1  0x… ns::inner(int) /src/a.cpp:7:65 (a.out+0x1196)
//	#0    0x… int ns::Foo::run<int>(int) /src/a.cpp:9:73 (a.out+0x1196)
func (f *Filter) frame(number uint64, a *answer, i int) {
	inlined := a.knows && i < len(a.text.cuts)-1
	if !f.paint && a.knows && number <= 9999 {
		depth := 0
		if inlined {
			depth = i + 1
		}
		f.out = appendHead(f.out, number, depth, a.addr)
		f.out = append(f.out, a.text.tail(i)...)
		return
	}
	var n [20]byte
	digits := strconv.AppendUint(n[:0], number, 10)
	if f.paint {
		f.pen(f.highlight())
	}
	f.out = append(f.out, "    #"[min(len(digits), 5)-1:]...)
	f.valueBytes(digits)
	if inlined {
		f.mark(".")
		depth := strconv.AppendUint(n[:0], uint64(i+1), 10)
		if len(depth) < 2 {
			depth = append(depth, ' ')
		}
		f.valueBytes(depth)
	} else {
		f.mark("   ")
	}
	f.address(a.addr)
	switch {
	case a.mod == nil:
		f.mark("(no module)")
	case !a.knows:
		f.mark("(")
		f.place(a)
		f.mark(")")
		f.buildID(a.mod)
	default:
		t := a.text.frame(i)
		f.functionAndLine(t)
		f.mark(" (")
		f.place(a)
		f.mark(")")
	}
}

// appendHead appends what stands before the answer in the line of a frame:
// its number, of at most four digits, the depth of an inlined call, or 0, and
// the address. It is frame without colour, for the frames that come by the
// million.
func appendHead(dst []byte, number uint64, depth int, addr uint64) []byte {
	var b [32]byte
	h := append(b[:0], "    #"[digits(number)-1:]...)
	h = appendSmall(h, number)
	switch {
	case depth == 0:
		h = append(h, "   "...)
	case depth < 10:
		h = append(h, '.', '0'+byte(depth), ' ')
	default:
		h = strconv.AppendUint(append(h, '.'), uint64(depth), 10)
	}
	n := len(h)
	h = h[:n+20]
	putAddress(h[n:], addr)
	return append(dst, h...)
}

func digits(n uint64) int {
	switch {
	case n < 10:
		return 1
	case n < 100:
		return 2
	case n < 1000:
		return 3
	}
	return 4
}

func appendSmall(dst []byte, n uint64) []byte {
	if n < 10 {
		return append(dst, '0'+byte(n))
	}
	return strconv.AppendUint(dst, n, 10)
}

// address prints a code address between blanks.
func (f *Filter) address(addr uint64) {
	var b [20]byte
	putAddress(b[:], addr)
	f.valueBytes(b[:])
}

// putAddress makes the 20 bytes of b an address between blanks.
func putAddress(b []byte, addr uint64) {
	_ = b[19]
	b[0], b[1], b[2], b[19] = ' ', '0', 'x', ' '
	binary.BigEndian.PutUint64(b[3:], hexDigits(uint32(addr>>32)))
	binary.BigEndian.PutUint64(b[11:], hexDigits(uint32(addr)))
}

// hexDigits returns the eight digits of v as the bytes of a big-endian word:
// all at once, because every frame has sixteen.
func hexDigits(v uint32) uint64 {
	x := uint64(v)
	x = (x<<16 | x) & 0x0000ffff0000ffff
	x = (x<<8 | x) & 0x00ff00ff00ff00ff
	x = (x<<4 | x) & 0x0f0f0f0f0f0f0f0f // a digit a byte
	letters := (x + 0x0606060606060606) >> 4 & 0x0101010101010101
	return x + 0x3030303030303030 + letters*('a'-'0'-10)
}

func (f *Filter) functionAndLine(t frameText) {
	f.value(t.name)
	if t.file != "" {
		f.mark(" ")
		f.value(t.file)
		f.mark(":")
		f.value(t.line)
		f.mark(":")
		f.value(t.col)
	}
}

// place prints module+0xrel.
func (f *Filter) place(a *answer) {
	f.value(a.mod.label())
	f.mark("+")
	f.value("0x" + strconv.FormatUint(a.rel, 16))
}

// buildID prints what another tool needs to go on where nothing was found.
func (f *Filter) buildID(m *module) {
	f.mark(" (BuildId: ")
	f.value(m.buildID.String())
	f.mark(")")
}

// sentence prints a backtrace element that stands in a sentence:
//
//	ns::inner(int) /src/a.cpp:7:65 (a.out+0x1196) inlined into …
func (f *Filter) sentence(a *answer) {
	if !a.knows {
		f.value("0x" + strconv.FormatUint(a.addr, 16))
		if a.mod == nil {
			f.mark(" (no module)")
			return
		}
		f.mark(" (")
		f.place(a)
		f.mark(")")
		f.buildID(a.mod)
		return
	}
	for i := range a.text.cuts {
		if i > 0 {
			f.mark(" inlined into ")
		}
		f.functionAndLine(a.text.frame(i))
		if i == 0 {
			f.mark(" (")
			f.place(a)
			f.mark(")")
		}
	}
}

// location prints a code location:
//
//	ns::inner(int)[/src/a.cpp:7] inlined into int ns::Foo::run<int>(int)[/src/a.cpp:9]
func (f *Filter) location(a *answer) {
	if !a.knows {
		f.place(a)
		f.buildID(a.mod)
		return
	}
	for i := range a.text.cuts {
		t := a.text.frame(i)
		if i > 0 {
			f.mark(" inlined into ")
		}
		f.value(t.name)
		if t.file != "" {
			f.mark("[")
			f.value(t.file)
			f.mark(":")
			f.value(t.line)
			f.mark("]")
		}
	}
}

// variable prints a data address: table[3].refs, name+0x18.
func (f *Filter) variable(a *answer, p *piece) {
	switch {
	case a.mod == nil:
		f.bracketed(p)
	case !a.knows:
		f.place(a)
		f.buildID(a.mod)
	default:
		f.mark(a.text.data())
	}
}

// asItCame prints an element as it stood in the log.
func (f *Filter) asItCame(p *piece) {
	if f.paint {
		f.pen(f.state)
	}
	raw := p.Raw
	if p.elem != nil {
		raw = p.appendRaw(nil)
	}
	f.logText(raw)
}

// bracketed prints an element that nothing is known about, as LLVM's filter
// does: [[[pc:0x1234]]].
func (f *Filter) bracketed(p *piece) {
	raw := p.appendRaw(nil)
	f.mark("[[[")
	f.value(clean(string(raw[3 : len(raw)-3])))
	f.mark("]]]")
}
