package filter

import "github.com/symfilter/symfilter/markup"

// A piece is a part of a line: a token of its text, or a typed element from the Sink methods.
type piece struct {
	markup.Token
	elem markup.Element // typed element; nil if the token's fields must be parsed
	// fields of a backtrace element, set if parsed is true; the token's Fields then hold only the
	// message
	frame  frameFields
	parsed bool // see frame
}

// frameFields are the fields of a backtrace element except its message: with a markup.BT, a piece
// would be longer than two cache lines.
type frameFields struct {
	number, addr uint64
	kind         markup.PCKind
}

// shownAddr returns the address shown for the frame. Without a kind it is the logged address, even
// if the byte before was looked up.
func (f *frameFields) shownAddr(a *answer) uint64 {
	if f.kind == markup.Ambiguous {
		return f.addr
	}
	return a.addr
}

// empty reports whether the frame has no address: sanitizers log an unknown place as 0 without a
// kind.
func (f *frameFields) empty(a *answer) bool {
	return f.addr == 0 && f.kind == markup.Ambiguous && a.mod == nil
}

func (p *piece) appendRaw(dst []byte) []byte {
	if p.elem != nil {
		return p.elem.AppendMarkup(dst)
	}
	return append(dst, p.Raw...)
}

// typed returns the element of p as a T, either from p.elem or by parsing p.Fields. The scanner has
// checked the fields, so parse does not fail.
func typed[T markup.Element](p *piece, parse func([]byte) (T, *markup.SyntaxError)) (T, *markup.SyntaxError) {
	if e, ok := p.elem.(T); ok {
		return e, nil
	}
	return parse(p.Fields)
}

func (p *piece) module() (markup.Module, *markup.SyntaxError) {
	return typed(p, markup.ParseAs[markup.Module])
}
func (p *piece) mmap() (markup.MMap, *markup.SyntaxError) {
	return typed(p, markup.ParseAs[markup.MMap])
}
func (p *piece) pc() (markup.PC, *markup.SyntaxError) { return typed(p, markup.ParseAs[markup.PC]) }
func (p *piece) data() (markup.Data, *markup.SyntaxError) {
	return typed(p, markup.ParseAs[markup.Data])
}
func (p *piece) dict() (markup.HexDict, *markup.SyntaxError) {
	return typed(p, markup.ParseAs[markup.HexDict])
}
func (p *piece) dump() (markup.DumpFile, *markup.SyntaxError) {
	return typed(p, markup.ParseAs[markup.DumpFile])
}
func (p *piece) symbol() (markup.Symbol, *markup.SyntaxError) {
	return typed(p, markup.ParseAs[markup.Symbol])
}

// bt returns the fields of a backtrace element. Afterwards p.Fields is its message.
func (p *piece) bt() (e *frameFields, ok bool) {
	return &p.frame, p.parsed || p.parseBT()
}

func (p *piece) parseBT() bool {
	e, err := typed(p, markup.ParseAs[markup.BT])
	if err == nil {
		p.frame, p.Fields, p.parsed = frameFields{e.Frame, e.Addr, e.Kind}, []byte(e.Message), true
	}
	return err == nil
}

func tagOf(e markup.Element) markup.Tag {
	switch e.(type) {
	case markup.Reset:
		return markup.TagReset
	case markup.Module:
		return markup.TagModule
	case markup.MMap:
		return markup.TagMMap
	case markup.PC:
		return markup.TagPC
	case markup.BT:
		return markup.TagBT
	case markup.Data:
		return markup.TagData
	case markup.Symbol:
		return markup.TagSymbol
	case markup.HexDict:
		return markup.TagHexDict
	case markup.DumpFile:
		return markup.TagDumpFile
	}
	return markup.TagUnknown
}
