package dwarf

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// sourceSections returns a unit of [0x1000,2^32) with a line table. files are the directory and
// file tables of that line table, and lineStr holds the strings to which they refer.
func sourceSections(files []byte, lineStr string) sections {
	program := slices.Concat(setAddress(0x1000), []byte{lnsCopy}, endSequence)
	sec := lineSections(program)
	sec.data[secLine], sec.data[secLineStr] = lines5(files, program), []byte(lineStr)
	return sec
}

func TestContentsOfSources(t *testing.T) {
	order := binary.LittleEndian
	source := leb(lnctLLVMSource)
	dir := parts(order, 1, lnctPath, formString, 2, "/src", "/inc")
	sum := func(b byte) []byte { return bytes.Repeat([]byte{b}, 16) }
	long := strings.Repeat("x", MaxSource)
	for _, tt := range []struct {
		name, want string
		files      []byte
		strings    string
	}{
		{"neither", "", parts(order, dir, 2, lnctPath, formString, lnctDirectoryIndex, formUdata, 1, "a.c", 0), ""},
		{"a checksum", "0202", parts(order, dir, 3, lnctPath, formString, lnctDirectoryIndex, formUdata, lnctMD5, formData16, 3,
			"b.c", 0, sum(1), "a.c", 0, sum(2), "a.c", 1, sum(3)), ""},
		{"a checksum of another form", "", parts(order, dir, 2, lnctPath, formString, lnctMD5, formData8, 1, "a.c", uint64(7)), ""},
		{"the text", "int a;\n 0202", parts(order, dir, 4, lnctPath, formString, lnctDirectoryIndex, formUdata, lnctMD5, formData16, source, formLineStrp, 2,
			"a.c", 1, sum(1), uint32(0), "a.c", 0, sum(2), uint32(6)), "wrong\x00int a;\n\x00"},
		{"the text in place", "int a; ", parts(order, dir, 2, lnctPath, formString, source, formString, 1, "a.c", "int a;"), ""},
		{"no text", "0202", parts(order, dir, 3, lnctPath, formString, source, formString, lnctMD5, formData16, 1, "a.c", "", sum(2)), ""},
		{"the second of two entries", "0303", parts(order, dir, 3, lnctPath, formString, source, formString, lnctMD5, formData16, 2, "a.c", "", sum(3), "a.c", "", sum(4)), ""},
		{"text beyond the section", "", parts(order, dir, 2, lnctPath, formString, source, formLineStrp, 1, "a.c", uint32(9)), "int a;\x00"},
		{"text without an end", "", parts(order, dir, 2, lnctPath, formString, source, formLineStrp, 1, "a.c", uint32(0)), "int a;"},
		{"the longest text", long + " ", parts(order, dir, 2, lnctPath, formString, source, formLineStrp, 1, "a.c", uint32(0)), long + "\x00"},
		{"a longer text", "", parts(order, dir, 2, lnctPath, formString, source, formLineStrp, 1, "a.c", uint32(0)), long + "x\x00"},
		{"2^28 files", "", parts(order, dir, 2, lnctPath, formString, lnctMD5, formData16, leb(1<<28), "a.c", sum(2)), ""},
		{"files cut off", "", parts(order, dir, 2, lnctMD5, formData16, lnctPath, formString, 2, sum(1), "b.c", sum(2)), ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			defer fuzztest.Watch(t, tt.name)()
			d := dataOf(sourceSections(tt.files, tt.strings))
			s, ok, _ := d.Source(0x1234, "/src/a.c")
			got := ""
			if s.Text != nil {
				got = string(s.Text) + " "
			}
			if s.HasMD5 {
				got += fmt.Sprintf("%x", s.MD5[:2])
			}
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("got %.40q, %v, want %.40q", got, ok, tt.want)
			}
			if _, ok, _ := d.Source(0x1234, "/src/c.c"); ok {
				t.Error("a file that is not in the table: found")
			}
			if _, ok, _ := d.Source(0x10, "/src/a.c"); ok {
				t.Error("an address without a unit: found")
			}
			checkFootprint(t, d)
		})
	}
}

// Source must give up within 2*maxWork steps if a table has a million files. The names of the files
// are long, or equal to the last part of the wanted path.
func TestContentsOfManySourcesAreBounded(t *testing.T) {
	order := binary.LittleEndian
	dir := parts(order, 1, lnctPath, formString, 1, strings.Repeat("d", 60<<10))
	entry := parts(order, "a.c", bytes.Repeat([]byte{1}, 16))
	files := parts(order, dir, 2, lnctPath, formString, lnctMD5, formData16, leb(maxFiles), bytes.Repeat(entry, maxFiles))
	name := parts(order, uint32(0), bytes.Repeat([]byte{1}, 16))
	longNames := parts(order, dir, 2, lnctPath, formLineStrp, lnctMD5, formData16, leb(maxFiles), bytes.Repeat(name, maxFiles))
	for _, sec := range []sections{sourceSections(files, ""), sourceSections(longNames, strings.Repeat("n", maxNameBytes-8)+"/a.c\x00")} {
		d := dataOf(sec)
		if _, ok, _ := d.Source(0x1234, "/src/a.c"); ok {
			t.Error("found")
		}
		if steps, _ := d.Spent(); steps > 2*maxWork {
			t.Errorf("%d steps", steps)
		}
	}
}
