package filter

import (
	"slices"

	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/markup"
)

// maxObject bounds the bytes of text in one object. A longer line becomes several objects; all
// except the last have "continues".
const maxObject = 1 << 20

// maxElements bounds the bytes of elements in one object; only the last element may exceed the
// bound. An element takes about 150 bytes without its names, but may have only 10 in the log.
const maxElements = 4 << 20

// A jsonPrinter prints JSON Lines: an object for each line of the log, with its text, its elements
// and their answers. log.schema.json is the published schema.
type jsonPrinter struct {
	members func(dst []byte, line int64) []byte // Options.Members
}

func (p *jsonPrinter) AppendLine(dst []byte, l *Line) []byte {
	b := jsonout.Buffer(dst)
	b.Line()
	if p.members != nil {
		b = p.members(b, l.Number)
	}
	b.Optional("process", l.Process)
	b.Text(l.Text)
	if l.Continues {
		b.Bool("continues", true)
	}
	if len(l.Elements) > 0 {
		b.Array("elements")
		for i := range l.Elements {
			b.Values(l.Elements[i].Appended)
		}
		b.EndArray()
	}
	b.EndLine()
	return b
}

func (p *jsonPrinter) AppendElement(dst []byte, e *Element) []byte {
	b := jsonout.Buffer(dst)
	b.Item()
	if e.Answer != nil && e.Answer.Dialect != "" {
		appendLocated(&b, e.Answer)
		b.EndObject()
		return b
	}
	b.String("tag", e.Tag.String())
	switch e.Tag {
	case markup.TagBT:
		b.Uint("frame", e.Answer.Frame)
		fallthrough
	case markup.TagPC, markup.TagData:
		b.Hex("address", e.Answer.Addr)
		b.Optional("message", e.Answer.Message)
		appendAnswer(&b, e.Answer)
	case markup.TagSymbol:
		b.String("name", e.Name)
		b.String("demangled", e.Shown)
	case markup.TagDumpFile:
		b.String("type", e.Type)
		b.String("name", e.Name)
	case markup.TagHexDict:
		b.Array("values")
		for i := range e.Values {
			v := &e.Values[i]
			b.Item()
			b.String("key", v.Key)
			b.Hex("value", v.Value)
			if v.Answer != nil {
				appendAnswer(&b, v.Answer)
			}
			b.EndObject()
		}
		b.EndArray()
	case markup.TagModule, markup.TagMMap:
		appendModule(&b, e.Module)
	}
	b.EndObject()
	return b
}

func appendLocated(b *jsonout.Buffer, r *Resolved) {
	b.String("tag", "frame")
	b.String("dialect", r.Dialect)
	if r.Frame != NoNumber {
		b.Uint("frame", r.Frame)
	}
	if r.Addr != 0 {
		b.Hex("address", r.Addr)
	}
	b.Optional("verified", r.Verified)
	b.Optional("module", r.Module)
	if !r.ID.IsZero() {
		b.String("build_id", r.ID.String())
	}
	if r.Verified == "" {
		b.Reason(r.Err)
		return
	}
	b.Hex("offset", r.Offset)
	appendFound(b, r)
}

func appendAnswer(b *jsonout.Buffer, r *Resolved) {
	b.Hex("lookup", r.Lookup)
	if r.Err == ErrNoModule {
		b.Reason(r.Err)
		return
	}
	b.String("module", r.Module)
	b.String("build_id", r.ID.String())
	b.Hex("offset", r.Offset)
	appendFound(b, r)
}

func appendFound(b *jsonout.Buffer, r *Resolved) {
	switch {
	case r.Variable != nil:
		b.Object("variable")
		b.Variable(r.Variable)
		if r.Variable.Size > 0 {
			b.Hex("size", r.Variable.Size)
		}
		b.EndObject()
	case len(r.Frames) > 0:
		b.Frames(r.Frames)
	default:
		b.Reason(r.Err)
	}
}

func appendModule(b *jsonout.Buffer, m *ElementModule) {
	b.Uint("id", m.Number)
	b.String("module", m.Name)
	b.String("build_id", m.ID.String())
	b.Array("maps")
	for i := range m.Maps {
		v := &m.Maps[i]
		b.Item()
		b.Hex("start", v.Start)
		b.Hex("end", v.End)
		b.String("mode", v.Mode.String())
		b.Hex("offset", v.Offset)
		b.EndObject()
	}
	b.EndArray()
}

// element returns m as an element with its maps so far.
func (m *moduleLine) element() *Element {
	e := &Element{Tag: markup.TagModule, Module: &ElementModule{Number: m.mod.id, Name: m.mod.name(), ID: m.mod.buildID()}}
	if m.adds {
		e.Tag = markup.TagMMap
	}
	for _, v := range m.maps {
		e.Module.Maps = append(e.Module.Maps, Mapping{v.start, v.end, v.rel, v.mode})
	}
	return e
}

func sortMaps(maps []interval) {
	slices.SortStableFunc(maps, func(a, b interval) int {
		switch {
		case a.start < b.start:
			return -1
		case a.start > b.start:
			return 1
		}
		return 0
	})
}
