package filter

import (
	"github.com/symfilter/symfilter/markup"
)

// lookup is how the address of an element is looked up.
type lookup uint8

const (
	exactAddress  lookup = iota // the logged address is the code location
	returnAddress               // a return address: the call is one byte before it
	unsaidAddress               // not said: one byte before, or exact where only that has a line
	unsaidFirst                 // not said, of the first frame: exact, or one byte before where only that has a line
	dataAddress                 // a data address
)

func lookupOf(k markup.PCKind) lookup {
	switch k {
	case markup.Precise:
		return exactAddress
	case markup.ReturnAddress:
		return returnAddress
	}
	return unsaidAddress
}

// lookupOfFrame is lookupOf for a frame of a backtrace. The two addresses
// of an unsaid form only differ in their answers where a line, an inlined call or
// a function begins. There, a first frame is the place of a fault: sanitizers
// log that, and addresses within the call for all others.
func lookupOfFrame(e markup.BT) lookup {
	if l := lookupOf(e.Kind); l != unsaidAddress || e.Frame > 0 {
		return l
	}
	return unsaidFirst
}

// lookUp returns which address is looked up for one that lies here, and the one
// before it back, and whether the form leaves a choice yet. Where it does, and
// the two addresses are not neighbours in one module, the logged one is taken:
// no call ends at the beginning of a module.
func lookUp(here, back interval, addr uint64, form lookup) (answer, lookup) {
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
		form = exactAddress // by now
	}
	return a, form
}
