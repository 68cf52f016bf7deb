package dwarf

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

func TestAttributesOfDeclarationsTakeNoMemory(t *testing.T) {
	le := binary.LittleEndian
	table := func(attributes int) (bytes int64) {
		var b []byte
		for code := range uint64(100) {
			b = append(b, parts(le, leb(code+1), tagNamespace, 0)...)
			for range attributes {
				b = append(b, attrName, formStrp)
			}
			b = append(b, 0, 0)
		}
		var t abbrevTable
		t.parse(cursor{buf: append(b, 0)}, encoding{version: 4, addrSize: 8, offSize: 4}, 0)
		return t.clone().footprint()
	}
	if few, many := table(1), table(40); many != few || many > 3200 {
		t.Errorf("100 declarations take %d bytes with 1 attribute each, %d with 40; want the same, at most 3200", few, many)
	}
}

// Padded numbers in declarations must be read. If the padding is longer than a 64-bit number needs,
// the table must be rejected: an attribute is read again for each entry that has it.
func TestPaddedNumbersOfDeclarations(t *testing.T) {
	padded := func(first byte, size int) []byte {
		return append(append([]byte{first | 0x80}, bytes.Repeat([]byte{0x80}, size-2)...), 0)
	}
	tests := []struct {
		name      string
		code, tag []byte
		attr      []byte
		broken    bool
	}{
		{"of 64 bits", padded(1, 10), padded(tagVariable, 10), padded(attrName, 10), false},
		{"a long code", padded(1, 1<<20), []byte{tagVariable}, []byte{attrName}, true},
		{"a long tag", []byte{1}, padded(tagVariable, 1<<20), []byte{attrName}, true},
		{"a long attribute", []byte{1}, []byte{tagVariable}, padded(attrName, 1<<20), true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := slices.Concat(tt.code, tt.tag, []byte{0}, tt.attr, []byte{formFlagPresent, 0, 0, 0})
			var table abbrevTable
			if table.parse(cursor{buf: b}, encoding{version: 4, addrSize: 8, offSize: 4}, 0); table.broken != tt.broken {
				t.Errorf("the table is broken: %t, want %t", table.broken, tt.broken)
			}
		})
	}
}

func TestAttributesOfDeclarations(t *testing.T) {
	b := parts(binary.LittleEndian, 5, tagVariable, 0,
		attrName, formStrp, leb(0x2116), formFlag, attrCallLine, formImplicitConst, []byte{0xff, 0x7e}, leb(1<<20), formData1, attrSibling, formRef4, 0, 0, 0)
	want := []attrSpec{{attr: attrName, form: formStrp}, {attr: 0x2116, form: formFlag},
		{attrCallLine, formImplicitConst, -129}, {attr: 0xffff, form: formData1}, {attr: attrSibling, form: formRef4}}
	tests := []struct {
		name   string
		change func(b []byte)
		want   []attrSpec
	}{
		{"as they were parsed", func([]byte) {}, want},
		{"in a file that changed since", func(b []byte) { copy(b[7:], bytes.Repeat([]byte{0x80}, len(b))) }, append(want[:1:1], make([]attrSpec, 4)...)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			b := slices.Clone(b)
			var table abbrevTable
			table.parse(cursor{buf: b}, encoding{version: 4, addrSize: 8, offSize: 4}, 0)
			if table.broken || table.get(5) == nil {
				t.Fatal("the declaration is damaged")
			}
			tt.change(b)
			var got []attrSpec
			specs := table.attrs(table.get(5))
			for range table.get(5).numSpecs {
				got = append(got, specs.next())
			}
			if !slices.Equal(got, tt.want) {
				t.Errorf("got %v, want %v", got, tt.want)
			}
		})
	}
}
