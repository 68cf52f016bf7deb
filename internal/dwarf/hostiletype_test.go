package dwarf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// Abbreviations of the test's types.
const (
	abbrUnit     = iota + 1
	abbrVariable // name, type, with an address
	abbrStruct   // name, size, with children
	abbrMember   // name, type, offset
	abbrNameless // a member without a name: type, offset
	abbrArray    // element type, with children
	abbrRange    // a subrange with a count of 8 bytes
	abbrTypedef  // type
	abbrInt      // size
	abbrSigned   // a declaration with a signature
	abbrStride   // an array with a stride
	abbrTyped    // variable without an address: type, specification
)

var typeAbbrevs = parts(binary.LittleEndian,
	abbrUnit, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0,
	abbrVariable, tagVariable, 0, attrName, formString, attrType, formRef4, attrLocation, formExprloc, 0, 0,
	abbrStruct, tagStructureType, 1, attrName, formString, attrByteSize, formData8, 0, 0,
	abbrMember, tagMember, 0, attrName, formString, attrType, formRef4, attrDataMemberLocation, formData8, 0, 0,
	abbrNameless, tagMember, 0, attrType, formRef4, attrDataMemberLocation, formData8, 0, 0,
	abbrArray, tagArrayType, 1, attrType, formRef4, 0, 0,
	abbrRange, tagSubrangeType, 0, attrCount, formData8, 0, 0,
	abbrTypedef, tagTypedef, 0, attrType, formRef4, 0, 0,
	abbrInt, 0x24, 0, attrByteSize, formData1, 0, 0,
	abbrSigned, tagStructureType, 0, attrSignature, formRefSig8, 0, 0,
	abbrStride, tagArrayType, 1, attrType, formRef4, attrByteStride, formData8, 0, 0,
	abbrTyped, tagVariable, 0, attrType, formRef4, attrSpecification, formRef4, attrLocation, formExprloc, 0, 0,
	0)

// A typeText is a unit of types under construction. The offset of a type is known when it is added.
type typeText struct{ body []byte }

const typesBase = 11 // bytes of the unit's header

func newTypeText() *typeText {
	return &typeText{parts(binary.LittleEndian, abbrUnit, uint64(0x1000), uint32(0x100))}
}

func (x *typeText) here() uint32 { return uint32(typesBase + len(x.body)) }

func (x *typeText) add(items ...any) uint32 {
	at := x.here()
	x.body = append(x.body, parts(binary.LittleEndian, items...)...)
	return at
}

func (x *typeText) variable(typ uint32) {
	x.add(abbrVariable, "v", typ, 9, opAddr, uint64(0x2000))
}

// data returns the unit, with a variable section from 0x2000 to 0x3000.
func (x *typeText) data() *Data {
	var sec sections
	sec.data[secAbbrev], sec.data[secInfo] = typeAbbrevs, unit4(append(bytes.Clone(x.body), 0))
	d := dataOf(sec)
	d.variables().ranges = []dataRange{{0x2000, 0x3000}}
	return d
}

func TestHostileTypes(t *testing.T) {
	tests := []struct {
		name  string
		write func(x *typeText)
		off   uint64
		want  string
	}{
		{"a good one", func(x *typeText) {
			i := x.add(abbrInt, 4)
			s := x.add(abbrStruct, "s", uint64(8), abbrMember, "a", i, uint64(0), abbrMember, "b", i, uint64(4), 0)
			a := x.add(abbrArray, s, abbrRange, uint64(4), 0)
			x.variable(a)
		}, 20, "[2].b"},
		{"a typedef of itself", func(x *typeText) { x.variable(x.add(abbrTypedef, x.here())) }, 1, ""},
		{"typedefs of each other", func(x *typeText) {
			at := x.here()
			x.add(abbrTypedef, at+5)
			x.add(abbrTypedef, at)
			x.variable(at)
		}, 1, ""},
		{"a struct in itself", func(x *typeText) {
			at := x.here()
			x.variable(x.add(abbrStruct, "s", uint64(8), abbrMember, "a", at, uint64(0), 0))
		}, 1, ""},
		{"a nameless struct in itself", func(x *typeText) {
			at := x.here()
			x.variable(x.add(abbrStruct, "s", uint64(8), abbrNameless, at, uint64(0), abbrNameless, at, uint64(0), 0))
		}, 1, ""},
		{"an array of itself", func(x *typeText) {
			at := x.here()
			x.variable(x.add(abbrArray, at, abbrRange, uint64(2), 0))
		}, 1, ""},
		{"an array with a stride, of itself", func(x *typeText) {
			at := x.here()
			x.variable(x.add(abbrStride, at, uint64(2), abbrRange, uint64(2), 0))
		}, 3, ""},
		{"2^62 elements", func(x *typeText) {
			i := x.add(abbrInt, 4)
			x.variable(x.add(abbrArray, i, abbrRange, uint64(1)<<62, 0))
		}, 8, "[2]"},
		{"2^62 times 2^62 elements", func(x *typeText) {
			i := x.add(abbrInt, 4)
			x.variable(x.add(abbrArray, i, abbrRange, uint64(1)<<62, abbrRange, uint64(1)<<62, 0))
		}, 8, ""},
		{"2^64-1 elements", func(x *typeText) {
			i := x.add(abbrInt, 4)
			x.variable(x.add(abbrArray, i, abbrRange, ^uint64(0), 0))
		}, 8, "[2]"},
		{"a hundred dimensions", func(x *typeText) {
			i := x.add(abbrInt, 4)
			a := x.add(abbrArray, i)
			for range 100 {
				x.add(abbrRange, uint64(1))
			}
			x.add(0)
			x.variable(a)
		}, 1, ""},
		{"elements of no bytes", func(x *typeText) {
			i := x.add(abbrInt, 0)
			x.variable(x.add(abbrArray, i, abbrRange, uint64(1)<<62, 0))
		}, 8, ""},
		{"a stride of 2^63", func(x *typeText) {
			i := x.add(abbrInt, 4)
			x.variable(x.add(abbrStride, i, uint64(1)<<63, abbrRange, uint64(4), 0))
		}, 8, "[0]+0x8"},
		{"a struct of 2^64-1 bytes", func(x *typeText) {
			i := x.add(abbrInt, 4)
			x.variable(x.add(abbrStruct, "s", ^uint64(0), abbrMember, "a", i, ^uint64(0)-1, abbrMember, "b", i, uint64(6), 0))
		}, 8, ".b+0x2"},
		{"members without end", func(x *typeText) {
			i := x.add(abbrInt, 4)
			x.variable(i)
			x.add(abbrStruct, "s", uint64(8), abbrMember, "a", i, uint64(4))
		}, 1, ""},
		{"no such type", func(x *typeText) { x.variable(1 << 30) }, 1, ""},
		{"a type in the header", func(x *typeText) { x.variable(4) }, 1, ""},
		{"a type in the middle of an entry", func(x *typeText) { x.variable(x.add(abbrInt, 4) + 1) }, 1, ""},
		{"the unit as a type", func(x *typeText) { x.variable(typesBase) }, 1, ""},
		{"no such signature", func(x *typeText) { x.variable(x.add(abbrSigned, uint64(42))) }, 1, ""},
		{"a variable that completes itself", func(x *typeText) {
			at := x.here()
			x.add(abbrTyped, uint32(1<<30), at, 9, opAddr, uint64(0x2000))
		}, 1, ""},
		{"a long name", func(x *typeText) {
			i := x.add(abbrInt, 4)
			x.variable(x.add(abbrStruct, "s", uint64(8), abbrMember, strings.Repeat("n", 1<<16), i, uint64(4), 0))
		}, 4, ""},
		{"a hostile name", func(x *typeText) { // the filter escapes it, not this package
			i := x.add(abbrInt, 4)
			x.variable(x.add(abbrStruct, "s", uint64(8), abbrMember, "\x1b[31m\n", i, uint64(4), 0))
		}, 4, ".\x1b[31m\n"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := newTypeText()
			tt.write(x)
			d := x.data()
			defer fuzztest.Watch(t, tt.name)()
			for _, size := range []uint64{64, 0} {
				v, _, err := d.Variable(0x2000+tt.off, Extent{[]byte("v"), 0x2000, size})
				if err != nil {
					t.Error(err)
				}
				if size > 0 && v.Member != tt.want {
					t.Errorf("got %q, want %q", v.Member, tt.want)
				}
			}
			d.Variable(0x2000+tt.off, Extent{})
			checkFootprint(t, d)
		})
	}
}

// TestTypeWorkIsBounded looks up members of types that would take quadratic time or more.
func TestTypeWorkIsBounded(t *testing.T) {
	tests := []struct {
		name  string
		write func(x *typeText)
	}{
		{"nameless unions in each other, two of each", func(x *typeText) {
			last := x.add(abbrStruct, "empty", uint64(64), 0)
			for range maxTypeDepth {
				last = x.add(abbrStruct, "s", uint64(64), abbrNameless, last, uint64(0), abbrNameless, last, uint64(0), 0)
			}
			x.variable(last)
		}},
		{"named ones", func(x *typeText) {
			last := x.add(abbrStruct, "empty", uint64(64), 0)
			for range maxTypeDepth {
				last = x.add(abbrStruct, "s", uint64(64), abbrMember, "a", last, uint64(0), abbrMember, "b", last, uint64(0), 0)
			}
			x.variable(last)
		}},
		{"many members of a deep type", func(x *typeText) {
			last := x.add(abbrInt, 4)
			for range maxTypeDepth - 1 {
				last = x.add(abbrTypedef, last)
			}
			s := x.add(abbrStruct, "s", uint64(64))
			for range 100_000 {
				x.add(abbrMember, "m", last, uint64(0))
			}
			x.add(0)
			x.variable(s)
		}},
		{"arrays of arrays in many members", func(x *typeText) {
			last := x.add(abbrInt, 0)
			for range maxTypeDepth {
				last = x.add(abbrArray, last, abbrRange, uint64(1), 0)
			}
			s := x.add(abbrStruct, "s", uint64(64))
			for range 100_000 {
				x.add(abbrMember, "m", last, uint64(0))
			}
			x.add(0)
			x.variable(s)
		}},
		{"many variables at one address", func(x *typeText) {
			last := x.add(abbrInt, 4)
			for range maxTypeDepth - 1 {
				last = x.add(abbrTypedef, last)
			}
			for range 200_000 {
				x.variable(last)
			}
		}},
		{"deep nesting", func(x *typeText) {
			x.variable(x.here() + 20)
			for range 300_000 {
				x.add(abbrStruct, "s", uint64(64))
			}
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			x := newTypeText()
			tt.write(x)
			d := x.data()
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			for i := range 3 {
				done := fuzztest.Watch(t, fmt.Sprintf("%s, lookup %d", tt.name, i))
				d.Variable(0x2010, Extent{[]byte("other"), 0x2000, 64})
				done()
			}
			t.Logf("%v", time.Since(start)/3)
			runtime.ReadMemStats(&after)
			if n := after.TotalAlloc - before.TotalAlloc; n > 3*64<<20 {
				t.Errorf("three lookups allocate %d MiB", n>>20)
			}
		})
	}
}
