package filter

import "github.com/symfilter/symfilter/markup"

// A piece is a part of a line: a token of its text, or a typed element from the Sink methods.
type piece struct {
	markup.Token
	elem   markup.Element // typed; nil if the fields of the token are to be parsed
	frame  markup.BT      // the parsed fields of a backtrace element, if parsed is true
	parsed bool           // see frame
}

// appendRaw appends the element as markup.
func (p *piece) appendRaw(dst []byte) []byte {
	if p.elem != nil {
		return p.elem.AppendMarkup(dst)
	}
	return append(dst, p.Raw...)
}

// typed returns the element of p as a T. It parses the fields of a token; it cannot fail, since the
// scanner has checked them.
func typed[T markup.Element](p *piece, parse func([]byte) (T, *markup.SyntaxError)) (T, *markup.SyntaxError) {
	if e, ok := p.elem.(T); ok {
		return e, nil
	}
	return parse(p.Fields)
}

func (p *piece) module() (markup.Module, *markup.SyntaxError) { return typed(p, markup.ParseModule) }
func (p *piece) mmap() (markup.MMap, *markup.SyntaxError)     { return typed(p, markup.ParseMMap) }
func (p *piece) pc() (markup.PC, *markup.SyntaxError)         { return typed(p, markup.ParsePC) }
func (p *piece) data() (markup.Data, *markup.SyntaxError)     { return typed(p, markup.ParseData) }
func (p *piece) dict() (markup.HexDict, *markup.SyntaxError)  { return typed(p, markup.ParseHexDict) }
func (p *piece) dump() (markup.DumpFile, *markup.SyntaxError) { return typed(p, markup.ParseDumpFile) }
func (p *piece) symbol() (markup.Symbol, *markup.SyntaxError) { return typed(p, markup.ParseSymbol) }

func (p *piece) bt() (markup.BT, *markup.SyntaxError) {
	if p.parsed {
		return p.frame, nil
	}
	return typed(p, markup.ParseBT)
}

// tagOf returns the tag of a typed element.
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
