package dialect

// An anchor is the few bytes at which the search for a frame begins. Nearly every dialect has a
// hexadecimal number with its prefix.
type anchor uint8

const (
	anchor0x     anchor = iota // "0x"
	anchorPC                   // " pc": Android
	anchorIP                   // " ip" or "nip": the kernel's line for a process that died
	anchorOffset               // "\"o\"": MongoDB
	anchorAt                   // "@ 0": folly
	anchorWn                   // "wn]": perf's [unknown]
	anchorPCIs                 // "C=0": Go's PC=0x
	anchorMember               // "d_o": build_id_offset of ABRT
	anchorPath                 // " (/": bpftrace
	anchors

	// anchorLine stands for no text: its grammars match lines without an anchor that follow another
	// line of their dialect. They have a window, and are tried only in it.
	anchorLine
)

var anchorText = [anchors]string{"0x", " pc", "ip", `"o"`, "@ 0", "wn]", "C=0", "d_o", " (/"}

// digitsAfter is the distance in bytes of the hexadecimal digits from the beginning of each anchor;
// 0 if no digits follow.
var digitsAfter = [anchors]int{anchor0x: len("0x"), anchorIP: len("ip="), anchorAt: len("@ ")}

// ends is the set of the last bytes of anchors.
var ends = func() (set [256]bool) {
	for _, text := range anchorText {
		set[text[len(text)-1]] = true
	}
	return set
}()

// anchorTo returns the anchor that ends with b[last], and its offset. It compares bytes by hand,
// since it is called for a third of the bytes of lines that have an anchor.
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

// anchorOf returns the anchor of the mark at mark, and its offset. A mark is three bytes by which an
// anchor is found, so that few other texts have it: "0x" and the byte before, "]:0", "pc ", "PC=", or
// another anchor, or its first three bytes. At the beginning of a line it is "0x" itself.
func anchorOf(b []byte, mark int) (a anchor, at int, ok bool) {
	last := mark + 2
	switch b[mark] {
	case '0', 'p':
		last = mark + 1
	case ']', 'P':
		last = mark + 3 // of "]:0x" and "PC=0"
	}
	if last >= len(b) || !ends[b[last]] {
		return 0, 0, false
	}
	return anchorTo(b, last)
}
