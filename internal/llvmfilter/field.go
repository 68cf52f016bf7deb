package llvmfilter

import (
	"bytes"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// fields parses the fields of an element. It reports the first defect, an invalid field or a
// wrong number of fields. After that, ok is false, and no field is parsed.
type fields struct {
	f  *Filter
	e  *element
	ok bool
}

func (f *Filter) fields(e *element) *fields { return &fields{f, e, true} }

// read parses field i. The parameter what is the expected content, for the diagnostic.
func read[T any](r *fields, i int, what string, parse func(text []byte) (T, bool)) (v T) {
	if !r.ok {
		return v
	}
	x := r.e.field(i)
	if v, r.ok = parse(x.text); !r.ok {
		r.f.complain("expected "+what+"; found '"+string(x.text)+"'", x.at)
	}
	return v
}

// require reports message, at field i, unless satisfied is true.
func (r *fields) require(satisfied bool, i int, message string) {
	if r.ok && !satisfied {
		r.f.complain(message, r.e.field(i).at)
		r.ok = false
	}
}

// literal requires field i to have the given text.
func (r *fields) literal(i int, text, message string) {
	if r.ok {
		r.require(string(r.e.field(i).text) == text, i, message)
	}
}

// exactly requires n fields. If there are more, it only warns.
func (r *fields) exactly(n int) {
	if !r.ok || r.e.fields == n {
		return
	}
	severity := "error: "
	if r.e.fields > n {
		severity = "warning: "
	}
	r.f.report(severity, r.count("expected ", n), true, r.e.tagEnd())
	r.ok = r.e.fields > n
}

// atLeast requires n fields or more.
func (r *fields) atLeast(n int) {
	if r.ok = r.e.fields >= n; !r.ok {
		r.f.complain(r.count("expected at least ", n), r.e.tagEnd())
	}
}

// atMost warns of more than n fields.
func (r *fields) atMost(n int) {
	if r.ok && r.e.fields > n {
		r.f.warn(r.count("expected at most ", n), r.e.tagEnd())
	}
}

func (r *fields) count(expected string, want int) string {
	return expected + strconv.Itoa(want) + " field(s); found " + strconv.Itoa(r.e.fields)
}

// address parses a memory address: zeros, or "0x" and hexadecimal digits. The value must fit into
// 64 bits.
func address(text []byte) (uint64, bool) {
	if len(text) > 0 && len(bytes.Trim(text, "0")) == 0 {
		return 0, true
	}
	digits, ok := bytes.CutPrefix(text, []byte("0x"))
	if !ok {
		return 0, false
	}
	return number(digits, 16)
}

// integer parses a module ID or a size.
func integer(text []byte) (uint64, bool) { return number(radix(text)) }

// radix returns the digits of an integer, and their radix from the prefix: 0x, 0b, 0o, or 0
// before another digit.
func radix(b []byte) (digits []byte, base int) {
	if len(b) < 2 || b[0] != '0' {
		return b, 10
	}
	switch c := b[1]; {
	case c == 'x' || c == 'X':
		return b[2:], 16
	case c == 'b' || c == 'B':
		return b[2:], 2
	case c == 'o':
		return b[2:], 8
	case c >= '0' && c <= '9':
		return b[1:], 8
	}
	return b, 10
}

// number parses digits whose value fits into 64 bits.
func number(digits []byte, base int) (v uint64, ok bool) {
	v, err := strconv.ParseUint(string(digits), base, 64)
	return v, err == nil
}

// frameNumber parses the number of a frame: decimal digits.
func frameNumber(text []byte) (uint64, bool) { return number(text, 10) }

// buildID parses the bytes of a build ID. If the number of digits is odd, the first digit is the
// first byte.
func buildID(digits []byte) ([]byte, bool) {
	if len(digits)%2 != 0 {
		digits = append([]byte{'0'}, digits...)
	}
	id := make([]byte, hex.DecodedLen(len(digits)))
	_, err := hex.Decode(id, digits)
	return id, err == nil && len(id) > 0
}

// mode parses the mode of a map: one or more of r, w and x, in this order, in either case. The
// result is in lower case.
func mode(text []byte) (string, bool) {
	m := strings.ToLower(string(text))
	return m, slices.Contains(modes, m)
}

var modes = []string{"r", "rw", "rx", "rwx", "w", "wx", "x"}

// kind parses the kind of a code address: "pc" or "ra". before is the number of bytes to subtract
// from the address for its lookup: 1 for a return address.
func kind(text []byte) (before uint64, ok bool) {
	switch string(text) {
	case "ra": // a return address
		return 1, true
	case "pc":
		return 0, true
	}
	return 0, false
}
