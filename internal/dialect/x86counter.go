package dialect

// IsCounter reports whether the three letters at the given offset, "rip" or "eip" in any case, may
// be the name of a register before its value. If [Reader.OnX86] is set, lines without such a name
// need not be read for firmware.
func IsCounter(b []byte, at int) bool {
	end := at + len("rip")
	if at > 0 && isLetter(b[at-1]) && !colorEnds(b, at) || isWordAt(b, end) {
		return false
	}
	end = blanksAfter(b, end)
	return hasAt(b, end, ")") || hasAt(b, end, ":") || hasAt(b, end, "=") || hasAt(b, end, "/x1=") || hasAt(b, end, "\x1b")
}
