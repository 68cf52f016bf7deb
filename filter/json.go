package filter

import (
	"encoding/base64"
	"slices"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// jsonOut prints JSON Lines: an object for each line of the log. The
// published form is log.schema.json. Text is rendered as ever, to
// Filter.out; when its line is whole, it becomes an object with what was found
// out about the line's elements.
type jsonOut struct {
	lines   []byte   // objects, not yet at the writer
	records []record // of the current line
	size    int      // bytes of records, about
	extra   []byte   // scratch: what Options.Members has appended
}

// record is one element of a line.
type record struct {
	json   []byte      // the object
	module *moduleLine // a module or its maps: printed when all maps are known
}

// jsonVersion is the "v" of each object: it changes when a field changes its
// meaning or goes, not when one is added.
const jsonVersion = `{"v":1`

// maxObject bounds the text of one object; a longer line is cut into several,
// all but the last with "continues".
const maxObject = 1 << 20

// maxElements bounds the elements of one object in bytes, but for the last one, in the same way. An
// element is some 150 bytes without its names, and may be 10 in the log.
const maxElements = 4 << 20

// emit makes the line at work an object.
func (j *jsonOut) emit(text []byte, records []record, process string, members []byte, continues bool) {
	b := append(append(j.lines, jsonVersion...), members...)
	if process != "" {
		b = append(b, `,"process":`...)
		b = appendString(b, process)
	}
	b = append(b, `,"text":`...)
	b, lossy := appendText(b, text)
	if lossy {
		b = append(b, `,"raw":"`...)
		b = base64.StdEncoding.AppendEncode(b, text)
		b = append(b, '"')
	}
	if continues {
		b = append(b, `,"continues":true`...)
	}
	for i := range records {
		if i == 0 {
			b = append(b, `,"elements":[`...)
		} else {
			b = append(b, ',')
		}
		if m := records[i].module; m != nil {
			b = appendModule(b, m)
		} else {
			b = append(b, records[i].json...)
		}
	}
	if len(records) > 0 {
		b = append(b, ']')
	}
	j.lines = append(b, "}\n"...)
}

// emit ends the object of the line at work, or of a part of it.
func (f *Filter) emit(continues bool) {
	f.json.emit(f.out, f.json.records, f.process.key, f.members(f.of), continues)
	f.json.records = f.json.records[:0]
	f.json.size = 0
	f.out = f.out[:0]
}

// members returns what the object of a line has besides; it is valid until the next call.
func (f *Filter) members(line int64) []byte {
	if f.o.Members == nil {
		return nil
	}
	f.json.extra = f.o.Members(f.json.extra[:0], line)
	return f.json.extra
}

// record remembers an element of the line at work.
func (f *Filter) record(object []byte) {
	f.json.records = append(f.json.records, record{json: object})
	f.json.size += len(object)
}

func (f *Filter) recordModule(m *moduleLine) {
	if f.json != nil {
		f.json.records = append(f.json.records, record{module: m})
	}
}

// recordTag remembers an element of which nothing but the fields is known.
func (f *Filter) recordTag(tag markup.Tag, fields ...string) {
	if f.json == nil {
		return
	}
	b := appendField([]byte{'{'}, "tag", tag.String())
	for i := 0; i+1 < len(fields); i += 2 {
		b = appendField(b, fields[i], fields[i+1])
	}
	f.record(append(b, '}'))
}

// recordAnswer remembers an element with an address: frame is a backtrace's
// number, or negative.
func (f *Filter) recordAnswer(tag markup.Tag, frame int64, addr uint64, a *answer) {
	if f.json == nil {
		return
	}
	b := appendField([]byte{'{'}, "tag", tag.String())
	if tag == markup.TagBT {
		b = append(b, `,"frame":`...)
		b = strconv.AppendUint(b, uint64(frame), 10)
	}
	b = appendAddress(b, "address", addr)
	f.record(append(appendAnswer(b, a), '}'))
}

// appendAnswer appends the fields of a resolved, or unresolved, address.
func appendAnswer(b []byte, a *answer) []byte {
	b = appendAddress(b, "lookup", a.addr)
	if a.mod == nil {
		return appendField(b, "reason", "no module covers the address")
	}
	b = appendField(b, "module", a.mod.name)
	b = appendField(b, "build_id", a.mod.buildID.String())
	b = appendAddress(b, "offset", a.rel)
	if !a.knows {
		reason := "no symbol covers the address"
		if a.err != nil {
			reason = a.err.Error()
		}
		return appendField(b, "reason", reason)
	}
	if v := a.text.variable; v != nil {
		b = append(b, `,"variable":{"name":`...)
		b = appendString(b, v.Name)
		if v.Linkage != v.Name {
			b = appendField(b, "linkage", v.Linkage)
		}
		if v.Member != "" {
			b = appendField(b, "member", v.Member)
		}
		b = appendAddress(b, "offset", v.Offset)
		if v.Size > 0 {
			b = appendAddress(b, "size", v.Size)
		}
		return append(b, '}')
	}
	b = append(b, `,"frames":[`...)
	for i := range a.text.frames {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendFrame(b, &a.text.frames[i])
	}
	return append(b, ']')
}

func appendFrame(b []byte, s *symbolize.Frame) []byte {
	b = append(b, `{"function":`...)
	b = appendString(b, s.Func)
	if s.Linkage != s.Func && s.Linkage != "" {
		b = appendField(b, "linkage", s.Linkage)
	}
	if s.File != "" {
		b = appendField(b, "file", s.File)
		b = append(b, `,"line":`...)
		b = strconv.AppendUint(b, uint64(s.Line), 10)
		b = append(b, `,"column":`...)
		b = strconv.AppendUint(b, uint64(s.Column), 10)
	} else {
		b = appendAddress(b, "offset", s.Offset)
	}
	b = append(b, `,"inlined":`...)
	b = strconv.AppendBool(b, s.Inlined)
	return append(b, '}')
}

// appendModule appends a module, or maps that were added to one.
func appendModule(b []byte, m *moduleLine) []byte {
	tag := markup.TagModule
	if m.adds {
		tag = markup.TagMMap
	}
	b = appendField(append(b, '{'), "tag", tag.String())
	b = append(b, `,"id":`...)
	b = strconv.AppendUint(b, m.mod.id, 10)
	b = appendField(b, "module", m.mod.name)
	b = appendField(b, "build_id", m.mod.buildID.String())
	b = append(b, `,"maps":[`...)
	for i, v := range m.maps {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, `{"start":"0x`...)
		b = strconv.AppendUint(b, v.start, 16)
		b = append(b, `","end":"0x`...)
		b = strconv.AppendUint(b, v.end, 16)
		b = append(b, '"')
		b = appendField(b, "mode", v.mode.String())
		b = append(appendAddress(b, "offset", v.rel), '}')
	}
	return append(b, "]}"...)
}

// appendField appends a member with a string, with a comma where one is due.
func appendField(b []byte, name, value string) []byte {
	return appendString(appendName(b, name), value)
}

// appendAddress appends a member with a number as a hex string: JSON's own
// numbers lose bits beyond 2^53.
func appendAddress(b []byte, name string, value uint64) []byte {
	b = append(appendName(b, name), `"0x`...)
	return append(strconv.AppendUint(b, value, 16), '"')
}

func appendName(b []byte, name string) []byte {
	if b[len(b)-1] != '{' {
		b = append(b, ',')
	}
	b = append(append(b, '"'), name...)
	return append(b, `":`...)
}

// appendString appends s as a JSON string, always valid UTF-8.
func appendString[S []byte | string](b []byte, s S) []byte {
	b, _ = appendText(b, s)
	return b
}

// appendText appends s as a JSON string; lossy says that bytes of s which are
// not UTF-8 became U+FFFD.
func appendText[S []byte | string](b []byte, s S) (_ []byte, lossy bool) {
	return escape.AppendHTMLString(b, s)
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
