package dialect

import (
	"bytes"

	"github.com/symfilter/symfilter/buildid"
)

const (
	minID = 1  // bytes; linkers make 8 to 20, and --build-id=0x… any number
	maxID = 64 // bytes; see buildid.ID
)

// buildIDAfter parses " (BuildId: HEX)" in b from at on, with any number of blanks before it, and
// returns its end. If there is none, it returns at and true; ok is false if the ID is malformed.
func (r *Reader) buildIDAfter(b []byte, at int) (id buildid.ID, end int, ok bool) {
	open := blanksAfter(b, at)
	const mark = "(BuildId: "
	if open == at || !hasAt(b, open, mark) {
		return id, at, true
	}
	from := open + len(mark)
	to := hexDigits(b, from)
	if !hasAt(b, to, ")") {
		return id, at, false
	}
	id, ok = r.parseID(b[from:to])
	return id, to + 1, ok
}

// cutIDAfter parses " (BuildId: HEX" or a part of it in b from at on, at the end of b: some logs cut
// lines at a width. prefix has the bytes of the ID before the cut, zero if there are none.
func cutIDAfter(b []byte, at int) (prefix buildid.ID, ok bool) {
	open := blanksAfter(b, at)
	const mark = "(BuildId: "
	rest := b[open:]
	if open == at || len(rest) == 0 {
		return prefix, false
	}
	if len(rest) < len(mark) {
		return prefix, hasAt([]byte(mark), 0, string(rest))
	}
	digits := rest[len(mark):]
	if !hasAt(rest, 0, mark) || len(digits) > 2*maxID || hexDigits(digits, 0) < len(digits) {
		return prefix, false
	}
	prefix, _ = buildid.Parse(bytes.ToLower(digits[:len(digits)&^1]))
	return prefix, true
}

// parseID returns the build ID with these hexadecimal digits. It keeps the ID of the last call,
// because the frames of a trace are in few modules.
func (r *Reader) parseID(digits []byte) (id buildid.ID, ok bool) {
	if len(digits) == 0 {
		return id, false
	}
	if bytes.Equal(digits, r.idDigits) {
		return r.id, true
	}
	if len(digits)%2 != 0 || len(digits) < 2*minID || len(digits) > 2*maxID {
		return id, false
	}
	id, err := buildid.Parse(bytes.ToLower(digits))
	if err != nil {
		return id, false
	}
	r.idDigits, r.id = append(r.idDigits[:0], digits...), id
	return id, true
}
