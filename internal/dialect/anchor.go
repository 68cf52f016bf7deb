package dialect

// An anchor is a text of a few bytes at which the search for a frame begins. In nearly every
// dialect it is the prefix of a hexadecimal number.
type anchor uint8

const (
	anchor0x     anchor = iota // "0x"
	anchorPC                   // " pc": Android
	anchorIP                   // " ip" or "nip": Linux's or QNX's line for a crashed process
	anchorOffset               // "\"o\"": MongoDB
	anchorAt                   // "@ 0": folly
	anchorWn                   // "wn]": perf's [unknown]
	anchorPCIs                 // "C=0": Go's PC=0x
	anchorMember               // "d_o": part of ABRT's build_id_offset
	anchorPath                 // " (/": bpftrace
	anchors

	// anchorLine has no text. Its grammars match lines without an anchor. Such a line follows
	// another line of the dialect, while the grammar's window is open.
	anchorLine
)

var anchorText = [anchors]string{"0x", " pc", "ip", `"o"`, "@ 0", "wn]", "C=0", "d_o", " (/"}

// digitsAfter is the number of bytes from an anchor's start to the hexadecimal digits that
// [fits.after] skips, or 0 to skip none.
var digitsAfter = [anchors]int{anchor0x: len("0x"), anchorIP: len("ip="), anchorAt: len("@ ")}

// ends[c] is true if an anchor ends with the byte c.
var ends = func() (set [256]bool) {
	for _, text := range anchorText {
		set[text[len(text)-1]] = true
	}
	return set
}()

// anchorTo returns the anchor that ends with b[last], and the anchor's offset. It compares single
// bytes, because it is called often.
func anchorTo(b []byte, last int) (a anchor, at int, ok bool) {
	if last == 0 {
		return 0, 0, false
	}
	before := b[last-1]
	switch b[last] {
	case 'x':
		return anchor0x, last - 1, before == '0'
	case 'p':
		return anchorIP, last - 1, before == 'i'
	case 'c':
		return anchorPC, last - 2, before == 'p' && last > 1 && b[last-2] == ' '
	case '"':
		return anchorOffset, last - 2, before == 'o' && last > 1 && b[last-2] == '"'
	case 'o':
		return anchorMember, last - 2, before == '_' && last > 1 && b[last-2] == 'd'
	case '/':
		return anchorPath, last - 2, before == '(' && last > 1 && b[last-2] == ' '
	case ']':
		return anchorWn, last - 2, before == 'n' && last > 1 && b[last-2] == 'w'
	}
	if before == '=' {
		return anchorPCIs, last - 2, last > 1 && b[last-2] == 'C'
	}
	return anchorAt, last - 2, before == ' ' && last > 1 && b[last-2] == '@'
}

// anchorOf returns the anchor for the mark at offset mark, and the anchor's offset. A mark is a
// text of three bytes that leads to an anchor: "0x" or "ip" with the byte before, "]:0", "pc ",
// "PC=", or another anchor. At the start of a line, "0x" alone is a mark.
func anchorOf(b []byte, mark int) (a anchor, at int, ok bool) {
	last := mark + 2
	switch b[mark] {
	case '0', 'p':
		last = mark + 1
	case ']', 'P':
		last = mark + 3 // in "]:0x" and "PC=0"
	}
	if last >= len(b) || !ends[b[last]] {
		return 0, 0, false
	}
	return anchorTo(b, last)
}
