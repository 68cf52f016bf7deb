package filter

import (
	"errors"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// ErrNoModule reports that no map of a log covers an address.
var ErrNoModule = errors.New("no module covers the address")

// Resolved is the answer for one address of a log.
type Resolved struct {
	Line  int64      // number of the line in the log, or in the record of Lines
	Tag   markup.Tag // of the element: TagBT, TagPC, TagData or TagHexDict
	Frame uint64     // number of a backtrace's frame
	Addr  uint64     // as logged

	// Lookup is the address that was looked up: one byte before Addr for a return address. Offset is
	// the same address, relative to the module. Module is the module's name as logged; without a
	// module there is neither that, Offset nor ID.
	Lookup uint64
	Offset uint64
	Module string
	ID     buildid.ID

	// Frames are those of a code address, innermost first, with files as Options.Paths shows them.
	// Variable is set for a data address. Without either, Err is the reason; nil if no symbol covers
	// the address. It wraps [symbolize.ErrPending] while the debug file is being looked for.
	Frames   []symbolize.Frame
	Variable *symbolize.Variable
	Err      error
}

// set makes r the answer a for an address.
func (r *Resolved) set(line int64, tag markup.Tag, frame, addr uint64, a *answer) {
	*r = Resolved{Line: line, Tag: tag, Frame: frame, Addr: addr, Lookup: a.addr}
	if a.mod == nil {
		r.Err = ErrNoModule
		return
	}
	r.Offset, r.Module, r.ID = a.rel, a.mod.name, a.mod.buildID
	switch {
	case !a.knows:
		r.Err = a.err
	case a.text.sources != nil:
		r.Frames, r.Variable = a.text.frames, a.text.variable
	}
}

// noteAnswer passes the answer for an address of the current line to Options.Resolved, and an element
// with it, of which the text from start is laid out, to the printer.
func (p *printing) noteAnswer(start int, tag markup.Tag, frame, addr uint64, a *answer) {
	if p.typed { // for a hot frame of text the call alone would show
		p.noteTyped(start, tag, frame, addr, a)
	}
}

func (p *printing) noteTyped(start int, tag markup.Tag, frame, addr uint64, a *answer) {
	r := &p.resolved
	r.set(p.of, tag, frame, addr, a)
	if p.onAnswer != nil {
		p.onAnswer(r)
	}
	if p.noted != nil {
		p.note(start, Element{Tag: tag, Answer: r})
	}
}

// noteValue is noteAnswer for a value of a hexdict, which the printer gets with the other values.
func (p *printing) noteValue(value uint64, a *answer) *Resolved {
	r := &p.resolved
	if p.noted != nil {
		r = new(Resolved)
	}
	r.set(p.of, markup.TagHexDict, 0, value, a)
	if p.onAnswer != nil {
		p.onAnswer(r)
	}
	return r
}
