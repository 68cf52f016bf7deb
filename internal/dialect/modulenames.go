package dialect

import (
	"bytes"

	"github.com/symfilter/symfilter/buildid"
)

const (
	minID = 1  // bytes; linkers make 8 to 20, and --build-id=0x… allows any number
	maxID = 64 // bytes; see buildid.ID
)

// modules converts names and build IDs in lines to strings and IDs. It caches the last name and the
// last ID, because consecutive frames are often in one module.
type modules struct {
	lastName   string
	lastDigits []byte // digits of lastID
	lastID     buildid.ID
	marks      lineMarks
}

func (c *modules) name(b []byte) string {
	if string(b) != c.lastName {
		c.lastName = string(b)
	}
	return c.lastName
}

// idAfter parses " (BuildId: HEX)", perhaps with more blanks, at the given offset of b, and returns
// the ID and its end. If there is no ID, ok is true and end is the given offset. ok is false for a
// malformed ID.
func (c *modules) idAfter(b []byte, at int) (id buildid.ID, end int, ok bool) {
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
	id, ok = c.id(b[from:to])
	return id, to + 1, ok
}

// cutIDAfter parses b[at:] as " (BuildId: HEX" or a beginning of that text, since some logs cut
// lines at a fixed width. prefix has the complete bytes of the ID.
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

func (c *modules) id(digits []byte) (id buildid.ID, ok bool) {
	if len(digits) == 0 {
		return id, false
	}
	if bytes.Equal(digits, c.lastDigits) {
		return c.lastID, true
	}
	if len(digits)%2 != 0 || len(digits) < 2*minID || len(digits) > 2*maxID {
		return id, false
	}
	id, err := buildid.Parse(bytes.ToLower(digits))
	if err != nil {
		return id, false
	}
	c.lastDigits, c.lastID = append(c.lastDigits[:0], digits...), id
	return id, true
}
