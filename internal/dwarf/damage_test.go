package dwarf

import (
	"encoding/binary"
	"errors"
	"testing"
)

func TestErrorsNameThePlaceOnce(t *testing.T) {
	order := binary.LittleEndian
	abbrev := parts(order,
		1, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0,
		2, 0x34, 0, attrName, formString, 0, 0, // a variable
		3, tagSubprogram, 0, attrLowPC, formAddr, 0, 0,
		0)
	root := parts(order, 1, uint64(0x1000), uint32(0x1000))
	tests := []struct {
		name string
		body []byte // after the root entry, which is at 0xb and has 13 bytes
		want string
	}{
		{"an attribute cut off", parts(order, 2, "x", 2, []byte("abc")), "dwarf: unit at 0x0: entry at 0x1b: attributes: damaged debug information"},
		{"a function cut off", parts(order, 2, "x", 3, []byte("abc")), "dwarf: unit at 0x0: entry at 0x1b: function: damaged debug information"},
		{"no such abbreviation", parts(order, 2, "x", 9), "dwarf: unit at 0x0: entry at 0x1b: abbreviation code: damaged debug information"},
	}
	for _, tt := range tests {
		var sec sections
		sec.data[secAbbrev], sec.data[secInfo] = abbrev, unit4(append(root, tt.body...))
		if _, err := dataOf(sec).Lookup(nil, 0x1001); err == nil || err.Error() != tt.want {
			t.Errorf("%s:\n got %v\nwant %s", tt.name, err, tt.want)
		}
	}

	// the error of sections.load already names the section
	d := newData(sections{load: func(name string) ([]byte, error) {
		return nil, errors.New("section " + name + ": flate: corrupt input")
	}})
	if _, err := d.Lookup(nil, 0x1001); err == nil || err.Error() != "dwarf: section .debug_aranges: flate: corrupt input" {
		t.Errorf("a section that cannot be had: got %v", err)
	}
}
