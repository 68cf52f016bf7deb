package html

import (
	"bytes"
	"strconv"
)

// A Value is an address in a line, with its Detail.
type Value struct {
	Start, End int // range of its text in the line
	Detail     Detail
}

// values holds the popovers that show the details of Values.
type values struct {
	ids     map[valueKey]int
	pending []byte // HTML of new popovers, printed after the block
}

// A valueKey identifies a popover.
type valueKey struct {
	text, module string
	offset       uint64
}

// Values prints a line of the log as Text does, but with a button at each value. The button shows
// the value's Detail. Lines that are only in chunks, and lines with colours, have no buttons.
func (p *Page) Values(text []byte, ended bool, all []Value) {
	if p.large || len(all) == 0 || bytes.IndexByte(text, esc) >= 0 {
		p.Text(text, ended)
		return
	}
	p.row(ended)
	p.openBlock()
	at := 0
	for i := range all {
		v := &all[i]
		if v.Start < at || v.End > len(text) || v.Start >= v.End {
			continue
		}
		id := p.values.id(text[v.Start:v.End], &v.Detail)
		if id == 0 {
			continue
		}
		p.html = appendEscaped(p.html, text[at:v.Start])
		p.html = strconv.AppendInt(append(p.html, `<button type="button" popovertarget="h`...), int64(id), 10)
		p.html = appendEscaped(append(p.html, `">`...), text[v.Start:v.End])
		p.html = append(p.html, "</button>"...)
		at = v.End
	}
	p.html = appendEscaped(p.html, text[at:])
	p.endText(ended)
	if p.inChunks() {
		p.chunk.add(appendLine(p.chunk.begin(), text, inChunk), ended)
	}
	p.grown()
}

// id returns the number of the popover for a value, or 0 if there are too many.
func (v *values) id(text []byte, d *Detail) int {
	key := valueKey{string(text), d.Module, d.Offset}
	if id, ok := v.ids[key]; ok {
		return id
	}
	if len(v.ids) >= maxValues {
		return 0
	}
	if v.ids == nil {
		v.ids = make(map[valueKey]int)
	}
	id := len(v.ids) + 1
	v.ids[key] = id
	b := strconv.AppendInt(append(v.pending, `<div popover id="h`...), int64(id), 10)
	b = append(b, `">`...)
	if d.Function != "" {
		b = append(appendPlace(append(b, "<p>"...), d), "</p>"...)
	}
	v.pending = append(appendDetail(b, d), "</div>\n"...)
	return id
}
