package filter

import (
	"slices"

	"github.com/symfilter/symfilter/internal/jsonout"
	"github.com/symfilter/symfilter/markup"
)

// maxObject bounds the text of one object; a longer line is cut into several,
// all but the last with "continues".
const maxObject = 1 << 20

// maxElements bounds the elements of one object in bytes, but for the last one, in the same way. An
// element is some 150 bytes without its names, and may be 10 in the log.
const maxElements = 4 << 20

// A jsonPrinter prints JSON Lines: an object for each line of the log, with its text and what was
// found out about its elements. The published form is log.schema.json.
type jsonPrinter struct {
	members func(dst []byte, line int64) []byte // Options.Members
}

func (p *jsonPrinter) appendLine(dst []byte, l *outputLine) []byte {
	b := jsonout.Buffer(dst)
	b.Line()
	if p.members != nil {
		b = p.members(b, l.number)
	}
	b.Optional("process", l.process)
	b.Text(l.text)
	if l.continues {
		b.Bool("continues", true)
	}
	if len(l.records) > 0 {
		b.Array("elements")
		for _, r := range l.records {
			if r.module != nil {
				appendModule(&b, r.module)
			} else {
				b.Values(r.made)
			}
		}
		b.EndArray()
	}
	b.EndLine()
	return b
}

func (p *jsonPrinter) element(e *element) []byte {
	var b jsonout.Buffer
	b.Item()
	b.String("tag", e.tag.String())
	switch e.tag {
	case markup.TagBT:
		b.Uint("frame", e.frame)
		fallthrough
	case markup.TagPC, markup.TagData:
		b.Hex("address", e.addr)
		appendAnswer(&b, e.answer)
	case markup.TagSymbol:
		b.String("name", e.names[0])
		b.String("demangled", e.names[1])
	case markup.TagDumpFile:
		b.String("type", e.names[0])
		b.String("name", e.names[1])
	case markup.TagHexDict:
		b.Array("values")
		for i := range e.values {
			v := &e.values[i]
			b.Item()
			b.String("key", v.key)
			b.Hex("value", v.value)
			if v.known {
				appendAnswer(&b, &v.answer)
			}
			b.EndObject()
		}
		b.EndArray()
	}
	b.EndObject()
	return b
}

// appendAnswer appends the members of a resolved, or unresolved, address.
func appendAnswer(b *jsonout.Buffer, a *answer) {
	b.Hex("lookup", a.addr)
	if a.mod == nil {
		b.String("reason", "no module covers the address")
		return
	}
	b.String("module", a.mod.name)
	b.String("build_id", a.mod.buildID.String())
	b.Hex("offset", a.rel)
	switch {
	case !a.knows:
		b.Reason(a.err)
	case a.text.variable != nil:
		b.Object("variable")
		b.Variable(a.text.variable)
		if a.text.variable.Size > 0 {
			b.Hex("size", a.text.variable.Size)
		}
		b.EndObject()
	default:
		b.Frames(a.text.frames)
	}
}

// appendModule appends a module, or maps that were added to one.
func appendModule(b *jsonout.Buffer, m *moduleLine) {
	tag := markup.TagModule
	if m.adds {
		tag = markup.TagMMap
	}
	b.Item()
	b.String("tag", tag.String())
	b.Uint("id", m.mod.id)
	b.String("module", m.mod.name)
	b.String("build_id", m.mod.buildID.String())
	b.Array("maps")
	for _, v := range m.maps {
		b.Item()
		b.Hex("start", v.start)
		b.Hex("end", v.end)
		b.String("mode", v.mode.String())
		b.Hex("offset", v.rel)
		b.EndObject()
	}
	b.EndArray()
	b.EndObject()
}

// sortMaps puts the maps of m in the order of their addresses.
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
