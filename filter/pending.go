package filter

import "bytes"

// Pending says what lines that come may yet change, or belong to: how many lines
// of the output the module line will be that is still collecting its maps, 0 if
// there is none; and whether any process is in the middle of a hexdict.
func (f *Filter) Pending() (lines int, dict bool) {
	switch m := f.open; {
	case m == nil:
	case f.json != nil:
		lines = 1
	default:
		lines = bytes.Count(m.before, newline) + bytes.Count(m.after, newline)
	}
	return lines, f.openDicts > 0
}

// WritePlain filters the lines at the beginning of b, which holds whole lines,
// up to the first that holds "{{{", and returns how many bytes they are. It
// is Write for whoever looks at lines with markup before the Filter does: bytes
// of others are looked at once. In the middle of a line, or of a hexdict, it
// does nothing.
func (f *Filter) WritePlain(b []byte) (int, error) {
	if len(f.tail) > 0 || f.long || f.openDicts > 0 {
		return 0, f.err
	}
	n, lines := findOpen(b)
	if n < len(b) {
		n = bytes.LastIndexByte(b[:n], '\n') + 1
	}
	switch {
	case n == 0:
		return 0, f.err
	case f.o.Color == ColorKeep:
		f.plain(b[:n], lines)
	default:
		f.block(b[:n])
	}
	f.send()
	return n, f.err
}
