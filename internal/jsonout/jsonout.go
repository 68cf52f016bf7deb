// Package jsonout writes the JSON of all front ends: objects of one version, one in each line. A
// frame, a variable, an address and bytes that are not text each have one form.
//
// Every string is valid UTF-8 and harmless on a terminal. The characters <, > and & are not
// escaped: a search for `Pool<ledger` must find the name. A program that puts an object into an
// HTML page must escape them.
package jsonout

import (
	"encoding/base64"
	"strconv"

	"github.com/symfilter/symfilter/internal/escape"
)

// version begins the object of each line. Its number grows if a member is removed or changes its
// meaning, not if a member is added.
const version = `{"v":1`

// A Buffer holds JSON. Its methods append to the JSON, with commas as needed. The zero value is
// empty. A method that takes a name appends a member to the open object. Only Key escapes the name.
// Nothing checks that every object and array is closed. A Buffer is not safe for concurrent use.
type Buffer []byte

// Line opens an object and appends its version.
func (b *Buffer) Line() { *b = append(*b, version...) }

// EndLine closes the object that Line opened, and ends its line.
func (b *Buffer) EndLine() { *b = append(*b, "}\n"...) }

// Item opens an object in an array, or after Key.
func (b *Buffer) Item() { *b = append(separated(*b), '{') }

// Object opens an object that is a member.
func (b *Buffer) Object(name string) { *b = append(named(*b, name), '{') }

// EndObject closes an object that Item or Object opened.
func (b *Buffer) EndObject() { *b = append(*b, '}') }

// Array opens an array that is a member.
func (b *Buffer) Array(name string) { *b = append(named(*b, name), '[') }

// EndArray closes an array.
func (b *Buffer) EndArray() { *b = append(*b, ']') }

// Values appends values to an array: JSON from another Buffer, with commas between. values must not
// be empty unless the array is empty.
func (b *Buffer) Values(values []byte) { *b = append(separated(*b), values...) }

// Members appends members from another Buffer, with commas between.
func (b *Buffer) Members(members []byte) {
	if len(members) > 0 {
		b.Values(members)
	}
}

// Key appends the name of a member. The name comes from a log or a report, so it is escaped. The
// next call must be of a method whose name ends in Item, which appends the value.
func (b *Buffer) Key(name []byte) {
	b.StringItem(name)
	*b = append(*b, ':')
}

// StringItem appends a string to an array, or after Key.
func (b *Buffer) StringItem(value []byte) { *b, _ = escape.AppendString(separated(*b), value) }

// ArrayItem opens an array in an array, or after Key.
func (b *Buffer) ArrayItem() { *b = append(separated(*b), '[') }

// BoolItem appends true or false to an array, or after Key.
func (b *Buffer) BoolItem(value bool) { *b = strconv.AppendBool(separated(*b), value) }

// IntItem appends a number to an array, or after Key.
func (b *Buffer) IntItem(value int64) { *b = strconv.AppendInt(separated(*b), value, 10) }

// String appends a member that is a string.
func (b *Buffer) String(name, value string) { *b, _ = escape.AppendString(named(*b, name), value) }

// Optional appends a member that is a string, unless value is empty.
func (b *Buffer) Optional(name, value string) {
	if value != "" {
		b.String(name, value)
	}
}

// Bytes appends a member that is a string.
func (b *Buffer) Bytes(name string, value []byte) {
	*b, _ = escape.AppendString(named(*b, name), value)
}

// Uint appends a member that is a number.
func (b *Buffer) Uint(name string, value uint64) { *b = strconv.AppendUint(named(*b, name), value, 10) }

// Int appends a member that is a number.
func (b *Buffer) Int(name string, value int64) { *b = strconv.AppendInt(named(*b, name), value, 10) }

// Bool appends a member that is true or false.
func (b *Buffer) Bool(name string, value bool) { *b = strconv.AppendBool(named(*b, name), value) }

// Hex appends an address, an offset or a mask as a string of hex digits: many JSON readers keep
// only 53 bits of a number.
func (b *Buffer) Hex(name string, value uint64) {
	*b = append(strconv.AppendUint(append(named(*b, name), `"0x`...), value, 16), '"')
}

// Text appends "text". If text is not valid UTF-8, it also appends "raw", the bytes in base64.
func (b *Buffer) Text(text []byte) {
	dst, lossy := escape.AppendString(named(*b, "text"), text)
	if lossy {
		dst = base64.StdEncoding.AppendEncode(append(named(dst, "raw"), '"'), text)
		dst = append(dst, '"')
	}
	*b = dst
}

func named(b []byte, name string) []byte {
	return append(append(append(separated(b), '"'), name...), `":`...)
}

// separated appends a comma, unless the next value follows its name, or is the first in an object,
// an array or a line.
func separated(b []byte) []byte {
	if n := len(b); n > 0 {
		switch b[n-1] {
		case '{', '[', ':', '\n':
		default:
			return append(b, ',')
		}
	}
	return b
}
