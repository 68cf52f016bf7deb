package dialect

// Lines with nothing but addresses. Seastar prints a backtrace in this form, with one address on
// each line or all on one:
//
//	0x13cb
//	0x1401
//
// An address below 2 GiB is an address in the ELF file, from which Seastar has subtracted 1. Other
// addresses are return addresses in the process. Other programs print such lines, too.
var addresses = Dialect{
	Name: "addresses", Who: "lines that contain only addresses, such as those of Seastar",
	Needs:    "--image FILE",
	Sample:   "0x13cb",
	OnDemand: true,
}

// matchAddresses matches a line of addresses. Its first address is at the given offset.
func matchAddresses(r *Reader, l *Line, at int) bool {
	b := l.Text
	if !onlyBlanks(b[:at], 0) {
		return false
	}
	first := at
	for !onlyBlanks(b, at) {
		at = blanksAfter(b, at)
		addr, end, ok := prefixedHex(b, at)
		if !ok || !onlyBlanks(b, end) && !hasAt(b, end, " ") || len(l.Frames) == maxListed {
			return false
		}
		f := l.frame()
		f.Start, f.Addr, f.Value, f.Kind, f.Call = first, addr, addr, Runtime, Return
		if addr < firstLibrary {
			f.Addr, f.Kind, f.Call, f.Program = 0, Vaddr, Adjusted, true
		}
		f.Below = "  " + string(b[at:end]) + ": "
		at = end
	}
	if len(l.Frames) == 1 {
		f := &l.Frames[0]
		f.Below = ""
		l.after(f, at)
	}
	return len(l.Frames) > 0
}
