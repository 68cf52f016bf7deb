package filter

import (
	"errors"
	"math"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/internal/judge"
	"github.com/symfilter/symfilter/markup"
	"github.com/symfilter/symfilter/symbolize"
)

// ErrNoModule is the Err of a [Resolved] if no map in the log covers the address.
var ErrNoModule = errors.New("no module covers the address")

// NoNumber is the value of [Resolved].Frame for a raw frame without a number in its line.
const NoNumber = math.MaxUint64

// Resolved is the answer for one address of a log, resolved or not.
type Resolved struct {
	Line  int64      // number of the line in the log, or in the record of Lines
	Tag   markup.Tag // tag of the element: TagBT, TagPC, TagData or TagHexDict
	Frame uint64     // number of a frame; NoNumber if the line has none
	Addr  uint64     // as logged

	// Logged is the number in a raw frame's line, such as an offset in a file or function. It is 0
	// for elements.
	Logged uint64

	// Dialect is the name of a raw frame's dialect; a raw frame has no Tag. Verified is the proof
	// of its answer: build-id, symbol, call, code, path or process. Elements have neither.
	Dialect  string
	Verified string

	// Message is the end of a backtrace element's fields, such as "sp 0x3f54".
	Message string

	// Lookup is the address looked up, one byte before Addr for a return address. Offset is Lookup
	// relative to the module, and Module the module's logged name. If Err is ErrNoModule, Offset,
	// Module and ID are zero.
	Lookup uint64
	Offset uint64
	Module string
	ID     buildid.ID

	// Frames are the frames at a code address, innermost first, with files in the form of
	// Options.Paths. Variable is set for a data address. Without both, Err is the reason, or nil if
	// no symbol covers the address. Err wraps [symbolize.ErrPending] during the search for the
	// debug file.
	Frames   []symbolize.Frame
	Variable *symbolize.Variable
	Err      error

	own    ownFrames // Display.Own
	system uint32    // see renderedParts
	found  *sources  // sources of Frames; nil if there are none
	at     symbolize.Location
	source func(symbolize.Location, *symbolize.Frame) symbolize.Snippet // Paths.Source
}

// Snippet returns the source lines around the i-th frame from Paths.Source, or the zero Snippet.
// Call it before Options.Resolved, or the printer's method, returns.
func (r *Resolved) Snippet(i int) (s symbolize.Snippet) {
	if r.source == nil || i >= len(r.Frames) {
		return s
	}
	fr := r.found.recordedFrame(i)
	return r.source(r.at, &fr)
}

// Link returns the URL of the source line of the i-th frame from Paths.Link, or "".
func (r *Resolved) Link(i int) string {
	if r.found == nil || i >= len(r.found.links) {
		return ""
	}
	return r.found.links[i]
}

// Own reports whether the i-th frame is the program's own, according to Display.Own. Without
// frames, the module decides.
func (r *Resolved) Own(i int) bool {
	if len(r.Frames) == 0 {
		return r.own == nil || r.own.Is("", "", r.Module)
	}
	return r.system&systemBit(i) == 0
}

func (r *Resolved) set(line int64, tag markup.Tag, frame, addr uint64, a *answer) {
	*r = Resolved{Line: line, Tag: tag, Frame: frame, Addr: addr, Lookup: a.addr}
	if a.mod == nil {
		r.Err = ErrNoModule
		return
	}
	r.Offset, r.Module, r.ID = a.rel, a.mod.name(), a.mod.buildID()
	switch {
	case !a.hasText:
		r.Err = a.err
	case a.text.sources != nil:
		r.Frames, r.Variable, r.system = a.text.frames, a.text.variable, a.text.system
		r.found, r.at = a.text.sources, a.location()
	}
}

// recordAnswer calls Options.Resolved with the answer for an address in the current line, and adds
// a record of its element. The element's text begins at start and has been laid out.
func (p *printing) recordAnswer(start int, tag markup.Tag, frame, addr uint64, message []byte, a *answer) {
	if p.needsSources { // checked here because the call alone would measurably slow down hot frames
		p.recordTypedAnswer(start, tag, frame, addr, message, a)
	}
}

func (p *printing) recordTypedAnswer(start int, tag markup.Tag, frame, addr uint64, message []byte, a *answer) {
	r := &p.resolved
	r.set(p.of, tag, frame, addr, a)
	r.own, r.source = p.own, p.sourceOf
	r.Message = string(message)
	if p.onAnswer != nil {
		p.onAnswer(r)
	}
	if p.records != nil {
		p.recordElement(start, Element{Tag: tag, Answer: r})
	}
}

// recordLocated is recordAnswer for a raw frame; a is nil if the frame was not located.
func (p *printing) recordLocated(start int, fr *judge.Frame, a *answer) {
	if !p.needsSources {
		return
	}
	r := &p.resolved
	number := uint64(NoNumber)
	if fr.Number >= 0 {
		number = uint64(fr.Number)
	}
	if a != nil {
		r.set(p.of, markup.TagUnknown, number, fr.Addr-fr.Less, a)
	} else {
		*r = Resolved{Line: p.of, Frame: number, Addr: fr.Addr - fr.Less, Module: fr.Module, ID: fr.ID, Err: fr.Place.Err}
	}
	r.Logged, r.Dialect, r.Verified, r.own, r.source = fr.Value, fr.Dialect.Name, fr.Place.Verified, p.own, p.sourceOf
	if p.onAnswer != nil {
		p.onAnswer(r)
	}
	if p.records != nil {
		p.recordElement(start, Element{Answer: r})
	}
}

// recordValue is recordAnswer for a value in a hexdict. It adds no record, since the hexdict's
// record has all values.
func (p *printing) recordValue(value uint64, a *answer) *Resolved {
	r := &p.resolved
	if p.records != nil {
		r = new(Resolved)
	}
	r.set(p.of, markup.TagHexDict, 0, value, a)
	r.own, r.source = p.own, p.sourceOf
	if p.onAnswer != nil {
		p.onAnswer(r)
	}
	return r
}
