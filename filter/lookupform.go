package filter

import (
	"github.com/symfilter/symfilter/markup"
)

// A lookup selects which address is looked up for a logged address. It is unspecified if the
// element does not give the kind of the address.
type lookup uint8

const (
	// the address itself; the address of a raw frame has already been moved into the call
	exactAddress  lookup = iota
	returnAddress        // the byte before the logged address, which is part of the call
	// the byte before the address, or the address itself if both are in one function and only the
	// address has a line
	unspecified
	// for a first frame: the address itself, or the byte before if only that byte has a line
	unspecifiedFirst
	dataAddress // a data address
	// the variable that contains a data address, for a report of a race
	wholeVariable
)

func lookupOf(k markup.PCKind) lookup {
	switch k {
	case markup.Precise:
		return exactAddress
	case markup.ReturnAddress:
		return returnAddress
	}
	return unspecified
}

// lookupOfFrame is lookupOf for a frame of a backtrace. Frame 0 may be the place of a fault. If
// this place is at the start of a line or function, the byte before belongs to other code.
// Sanitizers log the exact address of frame 0, and addresses within the call for other frames.
func lookupOfFrame(e *frameFields) lookup {
	if l := lookupOf(e.kind); l != unspecified || e.number > 0 {
		return l
	}
	return unspecifiedFirst
}

// chooseAddress returns the address to look up, and the form for its lookup. here is the interval
// of addr, the logged address; back is the interval of the byte before. If form allows both
// addresses and they are neighbours in one module, the symbolizer's answers decide later. Otherwise
// the logged address is used if it is in a module, since no call ends at a module's start.
func chooseAddress(here, back interval, addr uint64, form lookup) (answer, lookup) {
	one := here.mod != nil && here.mod == back.mod && here.at(addr) == back.at(addr-1)+1
	switch {
	case form == exactAddress, form != returnAddress && !one && here.mod != nil:
		form = exactAddress
	case form == returnAddress, !one:
		form = returnAddress
		here = back
	}
	a := answer{addr: addr, mod: here.mod}
	if form == returnAddress && addr > 0 {
		a.addr--
	}
	if here.mod != nil {
		a.rel = here.at(a.addr)
	}
	if form == returnAddress {
		form = exactAddress // a.addr is already adjusted
	}
	return a, form
}
