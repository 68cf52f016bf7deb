package judge

import (
	"slices"

	"github.com/symfilter/symfilter/internal/dialect"
	"github.com/symfilter/symfilter/internal/object"
)

// A Frame is a frame of a log with the result of judging it.
type Frame struct {
	*dialect.Frame
	Place  Place
	mapped bool // the module is known only from maps in the log
	// the mapping in a living process that identifies the module; nil without one
	live *ProcessMap
	// a mapping at a predictable address, which the stack has to prove; nil after the attempt
	likely *ProcessMap
}

// Unplaced appends frames, not yet located, to all. The result refers to frames.
func Unplaced(all []Frame, frames []dialect.Frame) []Frame {
	for i := range frames {
		all = append(all, Frame{Frame: &frames[i]})
	}
	return all
}

// A Place is the location of a frame: a file and an address in it.
type Place struct {
	// Image is the file, or nil if the build ID of the frame identifies it. If Err is not nil,
	// Image is the file that was tried, or nil.
	Image *Image

	// Addr is the address to look up in the file: for a return address, it is within the call.
	Addr     uint64
	Verified string // proof of the location: ByBuildID, …
	Err      error  // why the frame is not located; nil if it is
}

// The values of Place.Verified: how a location was proved.
const (
	ByBuildID = "build-id" // the log has the build ID of the file
	BySymbol  = "symbol"   // the file has the log's symbol at the logged distance
	ByCall    = "call"     // in the file, the return address follows a call
	ByCode    = "code"     // the file has the code that the log lists around the address
	ByProcess = "process"  // the process has mapped the file at the address
	ByPath    = "path"     // not checked; other frames prove the file, or the operator names it
)

// PlaceByID reports whether f's line alone is enough to judge f, and sets its Place. A build ID
// with an address in the file locates f, f.Unread refuses it, and a Named frame needs no Place.
func (f *Frame) PlaceByID() bool {
	if f.Named {
		return true
	}
	if f.Unread != nil {
		f.Place = Place{Err: f.Unread}
		return true
	}
	if f.ID.IsZero() || f.Kind != dialect.Vaddr || f.live != nil {
		return false
	}
	f.Place = Place{Addr: f.Value, Verified: ByBuildID}
	if f.Call == dialect.Return {
		f.Place.Addr--
	}
	return true
}

// isOfProgram reports whether f has an address in an ELF file but names no file: the file is then
// the program itself. It returns false if f is already judged.
func (f *Frame) isOfProgram() bool {
	return f.Place.Verified == "" && f.Place.Err == nil && f.Module == "" && f.ID.IsZero() && f.Kind == dialect.Vaddr
}

// isUnnamed reports whether f has an address but nothing that identifies its module. It returns
// false if f is already judged.
func (f *Frame) isUnnamed() bool {
	return f.Place.Verified == "" && f.Place.Err == nil && f.Module == "" && f.ID.IsZero() && f.Kind == dialect.Runtime && f.Addr != 0
}

// NamesSymbolAt returns an Examination that sets named if a symbol of the file with f's name covers
// addr. That name may be an alias of the name found by a lookup of addr.
func (f *Frame) NamesSymbolAt(addr uint64, named *bool) Examination {
	return func(file *object.File) { *named = isInside(file.SymbolsNamed(f.Symbol.Name), addr) }
}

// Clone returns a copy of frames that remains valid when their Line is reused.
func Clone(frames []Frame) []Frame {
	if len(frames) == 0 {
		return nil
	}
	n := 0
	for i := range frames {
		n += len(frames[i].Edits)
	}
	all, copies, edits := slices.Clone(frames), make([]dialect.Frame, len(frames)), make([]dialect.Edit, 0, n)
	for i := range all {
		from := len(edits)
		edits = append(edits, all[i].Edits...)
		copies[i] = *all[i].Frame
		copies[i].Edits = edits[from:len(edits):len(edits)]
		all[i].Frame = &copies[i]
	}
	return all
}
