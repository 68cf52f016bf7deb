package asis

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"github.com/symfilter/symfilter/internal/escape"
)

// object begins a JSON object for an answer. It appends the address, if the question has one, and
// the member called name if that sorts before ModuleName, since LLVM sorts members by name. The
// caller must call endObject.
func (p *printer) object(q *question, name string) {
	p.out = append(p.out, '{')
	if q.hasAddr {
		p.member("Address")
		p.hex(q.addr)
	}
	if name < "ModuleName" {
		p.member(name)
	}
}

// endObject appends the members from ModuleName on, and ends the object. It calls value to append
// the value of the member called name.
func (p *printer) endObject(q *question, module, name string, value func()) {
	if name < "ModuleName" {
		value()
	}
	p.member("ModuleName")
	p.text(module)
	if q.symbol != "" {
		p.member("SymName")
		p.text(q.symbol)
	}
	if name > "ModuleName" {
		p.member(name)
		value()
	}
	p.out = append(p.out, '}')
}

// member appends a member's name, after a comma unless the member is the object's first.
func (p *printer) member(name string) {
	if n := len(p.out); p.out[n-1] != '{' {
		p.out = append(p.out, ',')
	}
	p.out = append(append(append(p.out, '"'), name...), '"', ':')
}

func (p *printer) text(s string) {
	p.out, _ = escape.AppendString(p.out, strings.ToValidUTF8(s, "\ufffd"))
}

// hex appends a number as a string in hex.
func (p *printer) hex(n uint64) {
	p.out = append(strconv.AppendUint(append(p.out, `"0x`...), n, 16), '"')
}

func (p *printer) number(name string, n uint64) {
	p.member(name)
	p.out = strconv.AppendUint(p.out, n, 10)
}

func (p *printer) string(name, s string) {
	p.member(name)
	p.text(s)
}

// jsonCode prints places as JSON, as the member name.
func (p *printer) jsonCode(q *question, module, name string, all []place) {
	p.object(q, name)
	p.endObject(q, module, name, func() {
		p.out = append(p.out, '[')
		for i := range all {
			if i > 0 {
				p.out = append(p.out, ',')
			}
			p.jsonPlace(&all[i])
		}
		p.out = append(p.out, ']')
	})
}

func (p *printer) jsonPlace(at *place) {
	p.out = append(p.out, '{')
	p.number("Column", uint64(at.column))
	p.number("Discriminator", uint64(at.discriminator))
	p.string("FileName", at.file)
	p.string("FunctionName", at.function)
	p.number("Line", uint64(at.line))
	if source := appendSource(nil, at.file, int64(at.line), p.context); len(source) > 0 {
		p.string("Source", string(source))
	}
	p.member("StartAddress")
	if at.hasStart {
		p.hex(at.start)
	} else {
		p.text("")
	}
	p.string("StartFileName", at.declared)
	p.number("StartLine", uint64(at.declaredLine))
	p.out = append(p.out, '}')
}

func (p *printer) jsonData(q *question, module string, d *datum) {
	p.object(q, "Data")
	p.endObject(q, module, "Data", func() {
		p.out = append(p.out, '{')
		p.string("Name", d.name)
		p.member("Size")
		p.hex(d.size)
		p.member("Start")
		p.hex(d.start)
		p.out = append(p.out, '}')
	})
}

func (p *printer) jsonError(q *question, module, message string) {
	p.object(q, "Error")
	p.endObject(q, module, "Error", func() {
		p.out = append(p.out, '{')
		p.string("Message", message)
		p.out = append(p.out, '}')
	})
}

// indent breaks the JSON value after start into lines, as LLVM does with --pretty-print.
func (p *printer) indent(start int) {
	if !p.pretty {
		return
	}
	var text bytes.Buffer
	if json.Indent(&text, p.out[start:], "", "  ") == nil {
		p.out = append(p.out[:start], text.Bytes()...)
	}
}
