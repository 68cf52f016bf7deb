package dialect

import "bytes"

// Frames that symfilter itself has left unresolved. Another run can resolve them on a machine with
// the debug files. On separate lines they are
//
//	#1    0x000055d01234018d (inventory+0x14a654) (BuildId: 3a0a920c…)
//
// and in sentences
//
//	… at #1 0x55d01234018d (inventory+0x14a654) (BuildId: 3a0a920c…) after …
//
// The number after + is the address that the first run looked up. The answers to pc and data
// elements are in sentences, without a frame:
//
//	… bad access in inventory+0x14a654 (BuildId: 3a0a920c…)
var symfilter = Dialect{
	Name: "symfilter", Who: "symfilter, for frames that it could not resolve",
	Needs:  "the build ID in the frame",
	Sample: "    #1    0x000055d01234018d (inventory+0x14a654) (BuildId: 3a0a920c3f1b7c55)",
}

// matchSymfilter matches a frame that is alone on its line.
func matchSymfilter(r *Reader, l *Line, at int) bool {
	b := l.Text
	const before = "   " // columns for the depth of an inlined call
	if !endsWith(b, at-1, before) {
		return false
	}
	number, digits, ok := numberBefore(b, at-len(before))
	if !ok {
		return false
	}
	addr, m, open, ok := r.modules.symfilterFrame(b, at)
	if !ok {
		return false
	}
	f := l.frame()
	f.Number, f.Depth = number, Span{digits.To, digits.To + len(before)}
	f.Module, f.ID, f.Kind, f.Value, f.Addr, f.Call = m.module, m.id, Vaddr, m.offset, addr, Adjusted
	f.Start = digits.From - 1
	f.Inline = InlineDotted
	l.edit(f, Edit{Span{open, open}, "", Name, " "})
	l.edit(f, Edit{Span{open, open}, "", AtColumn, " "})
	l.edit(f, Edit{Span{m.close, m.end}, "", Nothing, ""})
	return true
}

// matchSymfilterSentence matches the frames and addresses in a sentence. The runtime address of the
// first frame, or the offset of the first address, begins at the given offset of the line.
func matchSymfilterSentence(r *Reader, l *Line, at int) bool {
	b := l.Text
	for range maxAnchors {
		end, ok := r.modules.frameInSentence(l, at)
		if !ok {
			end, ok = r.modules.addressInSentence(l, at)
		}
		switch {
		case ok:
			at = end
		case len(l.Frames) == 0:
			return false
		default:
			at += len("0x")
		}
		next := bytes.Index(b[at:], []byte("0x"))
		if next < 0 {
			break
		}
		at += next
	}
	return true
}

// frameInSentence adds the frame whose runtime address begins at the given offset, and returns its
// end.
func (c *modules) frameInSentence(l *Line, at int) (end int, ok bool) {
	number, digits, ok := numberBefore(l.Text, at)
	if !ok {
		return at, false
	}
	addr, m, open, ok := c.symfilterFrame(l.Text, at)
	if !ok {
		return at, false
	}
	f := l.frame()
	f.Number = number
	f.Module, f.ID, f.Kind, f.Value, f.Addr, f.Call = m.module, m.id, Vaddr, m.offset, addr, Adjusted
	f.Start = digits.From - 1
	f.Inline = Innermost
	l.edit(f, Edit{Span{at, open - 1}, "", Name, ""})
	l.edit(f, Edit{Span{open - 1, open - 1}, " ", AtColumn, ""})
	l.edit(f, Edit{Span{m.close, m.end}, "", Callers, ""})
	return m.end, true
}

// symfilterFrame parses a frame from its address on: "0xADDRESS (MODULE+0xOFFSET) (BuildId: HEX)".
// The module's "(" is at open.
func (c *modules) symfilterFrame(b []byte, at int) (addr uint64, m place, open int, ok bool) {
	addr, end, ok := prefixedHex(b, at)
	open = end + 1
	if !ok || !hasAt(b, end, " (") {
		return addr, m, open, false
	}
	m, ok = c.plus(b, open)
	return addr, m, open, ok && !m.id.IsZero()
}

// addressInSentence adds the address of code or data whose offset begins at the given index of the
// line, and returns its end: MODULE+0xOFFSET (BuildId: HEX). Any text may precede the module's
// name. addressInSentence takes the name to begin after a blank or a mark, although a name may
// contain one.
func (c *modules) addressInSentence(l *Line, at int) (end int, ok bool) {
	b := l.Text
	plus := at - 1
	if plus < 1 || b[plus] != '+' {
		return at, false
	}
	from := bytes.LastIndexAny(b[max(0, plus-maxPath):plus], " \t=([{<\"'`,;:|") + 1 + max(0, plus-maxPath)
	offset, digits, ok := prefixedHex(b, at)
	if !ok || from == plus || !hasAt(b, digits, " (") {
		return at, false
	}
	id, end, ok := c.idAfter(b, digits)
	if !ok || id.IsZero() {
		return at, false
	}
	f := l.frame()
	f.Number = -1
	f.Module, f.ID, f.Kind, f.Value, f.Addr, f.Call, f.Unframed = c.name(b[from:plus]), id, Vaddr, offset, offset, Exact, true
	f.Start = from
	l.edit(f, Edit{Span{from, end}, "", Name, ""})
	return end, true
}
