package dwarf

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
)

// A testSection is a section of an image.
type testSection struct {
	name string
	data []byte
}

// image returns an unlinked ELF file with these sections.
func image(sections ...testSection) []byte {
	const head = 64
	names := []byte{0}
	var body, headers []byte
	add := func(name string, kind uint32, data []byte) {
		headers = append(headers, parts(le, uint32(len(names)), kind, uint64(0), uint64(0), uint64(head+len(body)), uint64(len(data)), uint64(0), uint64(1), uint64(0))...)
		names = append(append(names, name...), 0)
		body = append(body, data...)
	}
	for _, s := range sections {
		add(s.name, 1, s.data)
	}
	names = append(names, ".shstrtab\x00"...)
	headers = append(headers, parts(le, uint32(len(names)-10), uint32(3), uint64(0), uint64(0), uint64(head+len(body)), uint64(len(names)), uint64(0), uint64(1), uint64(0))...)
	body = append(body, names...)
	n := uint16(len(sections) + 2) // with the null section and the section of names
	file := parts(le, []byte("\x7fELF\x02\x01\x01"), make([]byte, 9), uint16(1), uint16(62), uint32(1), uint64(0), uint64(0), uint64(head+len(body)),
		uint32(0), uint16(64), uint16(56), uint16(0), uint16(64), n, n-1)
	file = append(file, body...)
	file = append(file, make([]byte, 64)...)
	return append(file, headers...)
}

// imageFile opens an image. The image is in memory, so it need not be closed.
func imageFile(t testing.TB, file []byte) *object.File {
	t.Helper()
	o, err := object.Open(bytes.NewReader(file), int64(len(file)), nil)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// unit5 returns a unit of version 5 with an ID.
func unit5(kind int, id uint64, body []byte) []byte {
	return parts(le, uint32(len(body)+16), uint16(5), kind, 8, uint32(0), id, body)
}

// A splitSample is a program with one skeleton, at [0x1000,0x1100), and the sections of its split
// unit, whose function has an inlined call.
type splitSample struct {
	sec                                 sections
	info, abbrev, str, offsets, listing []byte
}

const sampleID = 0x1122334455667788

func newSplitSample() splitSample {
	s := splitSample{
		info: unit5(unitSplit, sampleID, parts(le, 1, "x.dwo", // names a .dwo file, as if the unit were a skeleton
			2, 0, uint32(0x100), 0, // outer
			3, 1, 0x10, uint32(20+1+6+7+7+1), // refers to the inlined function
			0,
			4, 1, // inner
			0)),
		abbrev: parts(le,
			1, tagCompileUnit, 1, attrDwoName, formString, 0, 0,
			2, tagSubprogram, 1, attrLowPC, formAddrx1, attrHighPC, formData4, attrName, formStrx1, 0, 0,
			3, tagInlinedSubroutine, 0, attrLowPC, formAddrx1, attrHighPC, formData1, attrAbstractOrigin, formRef4, 0, 0,
			4, tagSubprogram, 0, attrName, formStrx1, 0, 0,
			0),
		str:     parts(le, "outer", "inner"),
		offsets: parts(le, uint32(12), uint16(5), uint16(0), uint32(0), uint32(6)),
	}
	s.sec.data[secAbbrev] = parts(le, 1, tagSkeletonUnit, 0, attrLowPC, formAddr, attrHighPC, formData4, attrDwoName, formString, attrAddrBase, formSecOffset, 0, 0, 0)
	s.sec.data[secInfo] = unit5(unitSkeleton, sampleID, parts(le, 1, uint64(0x1000), uint32(0x100), "x.dwo", uint32(8)))
	s.sec.data[secAddr] = parts(le, uint32(20), uint16(5), 8, 0, uint64(0x1000), uint64(0x1020))
	return s
}

// dwo returns the file of the split unit.
func (s *splitSample) dwo(index []byte) []byte {
	return image(testSection{".debug_info.dwo", s.info}, testSection{".debug_abbrev.dwo", s.abbrev}, testSection{".debug_str.dwo", s.str},
		testSection{".debug_str_offsets.dwo", s.offsets}, testSection{".debug_rnglists.dwo", s.listing}, testSection{".debug_cu_index", index})
}

// data returns the debug information of the program. opened counts the open files.
func (s *splitSample) data(t testing.TB, opened *int, split, pack []byte) *Data {
	d := dataOf(s.sec)
	open := func(file []byte) Linked {
		if file == nil {
			return Linked{}
		}
		*opened++
		o := imageFile(t, file)
		return Linked{o, func() {
			*opened--
			o.Close()
		}}
	}
	d.link(Links{
		Package: func() Linked { return open(pack) },
		Split: func(dir, name string, holds func(*object.File) bool) Linked {
			l := open(split)
			if l.Object != nil && !holds(l.Object) {
				l.Close()
				return Linked{}
			}
			return l
		},
	})
	return d
}

// index returns the index of a package with one unit. Its columns are info, abbreviations and
// string offsets.
func index(version uint32, slots uint32, id uint64, row uint32, offs, sizes [3]uint32) []byte {
	b := parts(le, version, uint32(3), uint32(1), slots)
	ids, rows := make([]uint64, min(slots, 1<<10)), make([]uint32, min(slots, 1<<10))
	if slots > 0 {
		at := id & uint64(len(ids)-1)
		ids[at], rows[at] = id, row
	}
	return append(b, parts(le, ids, rows, uint32(sectInfo), uint32(sectAbbrev), uint32(sectStrOffsets), offs, sizes)...)
}

func TestSplitUnits(t *testing.T) {
	s := newSplitSample()
	good := []Frame{{Name: []byte("inner"), Inlined: true}, {Name: []byte("outer")}}
	other := newSplitSample()
	other.info = bytes.Replace(other.info, parts(le, uint64(sampleID)), parts(le, uint64(1)), 1)
	narrow := newSplitSample()
	narrow.info[7] = 4          // bytes of an address
	shifted := newSplitSample() // in a package after other units
	shifted.info = append(slices.Clone(other.info), s.info...)
	shifted.abbrev = append(make([]byte, 5), s.abbrev...)
	shifted.offsets = append(make([]byte, 12), s.offsets...)
	several := newSplitSample()
	several.info = append(slices.Clone(other.info), s.info...)
	at := [3]uint32{uint32(len(other.info)), 5, 12}
	sizes := [3]uint32{uint32(len(s.info)), uint32(len(s.abbrev)), 16}
	full := index(5, 4, sampleID, 1, at, sizes)
	for i := range 4 { // no slot is empty
		copy(full[16+32+4*i:], []byte{1})
		copy(full[16+8*i:], parts(le, uint64(i+1)))
	}
	tests := []struct {
		name        string
		split, pack []byte
		want        []Frame
		damaged     bool
	}{
		{"none", nil, nil, nil, false},
		{"a .dwo that names itself", s.dwo(nil), nil, good, false},
		{"a .dwo of several units", several.dwo(nil), nil, good, false},
		{"another ID", other.dwo(nil), nil, nil, false},
		{"another size of addresses", narrow.dwo(nil), nil, nil, true},
		{"no sections", image(), nil, nil, false},
		{"an empty section", image(testSection{".debug_info.dwo", nil}), nil, nil, false},
		{"a package", nil, shifted.dwo(index(5, 4, sampleID, 1, at, sizes)), good, false},
		{"a package of version 2", nil, shifted.dwo(index(2, 4, sampleID, 1, at, sizes)), good, false},
		{"a package without the unit", s.dwo(nil), shifted.dwo(index(5, 4, 1, 1, at, sizes)), good, false},
		{"a package without an empty slot", s.dwo(nil), shifted.dwo(full), good, false},
		{"a package without an index", s.dwo(nil), shifted.dwo(nil), good, true},
		{"an index of another version", s.dwo(nil), shifted.dwo(index(3, 4, sampleID, 1, at, sizes)), good, true},
		{"slots no power of two", s.dwo(nil), shifted.dwo(index(5, 3, sampleID, 1, at, sizes)), good, true},
		{"slots without end", s.dwo(nil), shifted.dwo(index(5, 1<<31, sampleID, 1, at, sizes)), good, true},
		{"a row beyond the end", s.dwo(nil), shifted.dwo(index(5, 4, sampleID, 2, at, sizes)), good, false},
		{"a unit beyond the end", s.dwo(nil), shifted.dwo(index(5, 4, sampleID, 1, [3]uint32{1 << 31, 0, 0}, sizes)), good, false},
		{"another unit's place", s.dwo(nil), shifted.dwo(index(5, 4, sampleID, 1, [3]uint32{0, 5, 12}, sizes)), good, false},
		{"abbreviations beyond the end", nil, shifted.dwo(index(5, 4, sampleID, 1, [3]uint32{at[0], 1 << 31, 12}, sizes)), nil, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opened := 0
			d := s.data(t, &opened, tt.split, tt.pack)
			for _, time := range []string{"first", "second"} {
				got, err := d.Lookup(nil, 0x1025)
				if diff := cmp.Diff(got, tt.want, cmp.Comparer(equalFrames)); diff != "" {
					t.Errorf("%s (-got +want):\n%s", time, diff)
				}
				if (err != nil) != tt.damaged && time == "first" {
					t.Errorf("got error %v, want one: %v", err, tt.damaged)
				}
			}
			checkScratch(t, d)
			if opened != d.Linked() || opened > 2 {
				t.Errorf("%d files are open, %d are counted", opened, d.Linked())
			}
			d.Shrink(0)
			if n := d.Footprint(); n != 0 || opened != 0 {
				t.Errorf("%d bytes are held, %d files are open after Shrink(0)", n, opened)
			}
			got, _ := d.Lookup(nil, 0x1025)
			if diff := cmp.Diff(got, tt.want, cmp.Comparer(equalFrames)); diff != "" {
				t.Errorf("after Shrink (-got +want):\n%s", diff)
			}
			if d.Close(); opened != 0 {
				t.Errorf("%d files are open after Close", opened)
			}
		})
	}
}

// All counts and lengths in an index must be checked against the index's size.
func TestHostilePackageIndex(t *testing.T) {
	whole := index(5, 4, sampleID, 1, [3]uint32{}, [3]uint32{1, 1, 1})
	for n := range whole {
		x, ok := parseIndex(cursor{buf: whole[:n:n]})
		if ok {
			t.Errorf("an index cut off at %d of %d bytes is taken", n, len(whole))
		}
		x.row(sampleID)
	}
	if x, ok := parseIndex(cursor{buf: whole}); !ok || x.row(sampleID) != 1 {
		t.Error("the index is not taken")
	}
	for _, field := range []int{4, 8, 12} {
		for _, count := range []uint32{1<<32 - 1, 1 << 31, 1 << 30, 1 << 29, 0x55555555} {
			b := slices.Clone(whole)
			le.PutUint32(b[field:], count)
			x, _ := parseIndex(cursor{buf: b})
			row := x.row(sampleID)
			x.contribution(row, sectInfo)
			x.contribution(1<<32-1, sectInfo)
		}
	}
	// a table without a free slot, and without the unit: the search must end
	b := parts(le, uint32(5), uint32(0), uint32(0), uint32(1<<18), make([]byte, 8<<18), bytes.Repeat([]byte{1}, 4<<18))
	x, ok := parseIndex(cursor{buf: b})
	if !ok || x.row(sampleID) != 0 {
		t.Error("a unit is found that is not there")
	}
}

// altSample returns a program whose names are in a supplementary file.
func altSample(form int, off uint32) (sec sections, alt []testSection) {
	sec.data[secAbbrev] = parts(le,
		1, tagCompileUnit, 1, attrLowPC, formAddr, attrHighPC, formData4, 0, 0,
		2, tagSubprogram, 0, attrLowPC, formAddr, attrHighPC, formData4, attrAbstractOrigin, leb(uint64(form)), 0, 0,
		3, tagSubprogram, 0, attrLowPC, formAddr, attrHighPC, formData4, attrName, leb(formGNUStrpAlt), 0, 0,
		0)
	ref := parts(le, off)
	if form == formRefSup8 {
		ref = parts(le, uint64(off))
	}
	sec.data[secInfo] = unit4(parts(le, 1, uint64(0x1000), uint32(0x1000), 2, uint64(0x1000), uint32(0x10), ref, 3, uint64(0x1010), uint32(0x10), off, 0))
	alt = []testSection{
		{".debug_info", unit4(parts(le, 1,
			2, "alone", // 12
			3, uint32(6), // 19: .debug_str
			4, uint32(11+1), // 24: refers to another unit of the missing supplementary file of this file
			5, uint32(29), // 29: refers to itself
			0))},
		{".debug_abbrev", parts(le,
			1, tagPartialUnit, 1, 0, 0,
			2, tagSubprogram, 0, attrName, formString, 0, 0,
			3, tagSubprogram, 0, attrLinkageName, formStrp, 0, 0,
			4, tagSubprogram, 0, attrAbstractOrigin, leb(formGNURefAlt), 0, 0,
			5, tagSubprogram, 0, attrAbstractOrigin, formRef4, 0, 0,
			0)},
		{".debug_str", parts(le, "first", "_Zsecond")},
	}
	return sec, alt
}

func TestSupplementaryFile(t *testing.T) {
	tests := []struct {
		name string
		form int
		off  uint32
		want string // name of the function at 0x1000
		text string // name of the function at 0x1010, at offset off of .debug_str
	}{
		{"a name", formGNURefAlt, 12, "alone", "nd"},
		{"a linkage name", formGNURefAlt, 19, "_Zsecond", ""},
		{"ref_sup4", formRefSup4, 12, "alone", "nd"},
		{"ref_sup8", formRefSup8, 19, "_Zsecond", ""},
		{"a supplementary file of its own", formGNURefAlt, 24, "", ""},
		{"itself", formGNURefAlt, 29, "", ""},
		{"the header", formGNURefAlt, 2, "", "rst"},
		{"beyond the end", formGNURefAlt, 1 << 31, "", ""},
		{"between entries", formGNURefAlt, 13, "", "d"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			sec, alt := altSample(tt.form, tt.off)
			for _, there := range []bool{true, false} {
				d := dataOf(sec)
				want := [2]string{}
				if there {
					d.UseAlt(imageFile(t, image(alt...)))
					want = [2]string{tt.want, tt.text}
				}
				for i, addr := range []uint64{0x1001, 0x1011} {
					got, _ := d.Lookup(nil, addr)
					if len(got) != 1 || string(got[0].Name) != want[i] {
						t.Errorf("%#x, with the file: %v: got %v, want %q", addr, there, got, want[i])
					}
				}
				checkScratch(t, d)
				d.Shrink(0)
				if n := d.Footprint(); n != 0 {
					t.Errorf("%d bytes are held after Shrink(0)", n)
				}
			}
		})
	}

	t.Run("the program itself", func(t *testing.T) {
		sec, _ := altSample(formGNURefAlt, 11+13)
		d := dataOf(sec)
		d.UseAlt(imageFile(t, image(testSection{".debug_info", sec.data[secInfo]}, testSection{".debug_abbrev", sec.data[secAbbrev]})))
		if got, err := d.Lookup(nil, 0x1001); len(got) != 1 || got[0].Name != nil || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
	})
}

// TestSplitMutations changes bytes of each file from which split units are read.
func TestSplitMutations(t *testing.T) {
	fuzztest.WithoutRace(t)
	r := rand.New(rand.NewPCG(1, 2))
	s := newSplitSample()
	at, sizes := [3]uint32{}, [3]uint32{uint32(len(s.info)), uint32(len(s.abbrev)), 16}
	for i := range 20000 {
		m := newSplitSample()
		x := index(5, 4, sampleID, 1, at, sizes)
		victims := [][]byte{m.info, m.abbrev, m.str, m.offsets, x, m.sec.data[secInfo], m.sec.data[secAbbrev], m.sec.data[secAddr]}
		for range 1 + r.IntN(3) {
			v := victims[r.IntN(len(victims))]
			v[r.IntN(len(v))] = byte(r.Uint32())
		}
		exerciseSplit(t, &m, x, i%2 == 0)
	}
}

// exerciseSplit looks up addresses whose units are split.
func exerciseSplit(t testing.TB, s *splitSample, index []byte, packed bool) {
	split, pack := s.dwo(nil), []byte(nil)
	if packed {
		pack = s.dwo(index)
	}
	opened := 0
	d := s.data(t, &opened, split, pack)
	d.UseAlt(imageFile(t, image(testSection{".debug_info", s.info}, testSection{".debug_abbrev", s.abbrev}, testSection{".debug_str", s.str})))
	for range 2 {
		for _, addr := range []uint64{0x1000, 0x1025, 0x10ff} {
			got, err := d.Lookup(nil, addr)
			if len(got) > maxFrames || err != nil && !errors.Is(err, ErrDamaged) {
				t.Errorf("%d frames, %v", len(got), err)
			}
		}
	}
	checkScratch(t, d)
	if opened != d.Linked() {
		t.Errorf("%d files are open, %d are counted", opened, d.Linked())
	}
	d.Shrink(d.Footprint() / 2)
	d.Lookup(nil, 0x1025)
	d.Shrink(0)
	if n := d.Footprint(); n != 0 || opened != 0 {
		t.Errorf("%d bytes are held, %d files are open after Shrink(0)", n, opened)
	}
	d.Lookup(nil, 0x1025)
	if d.Close(); opened != 0 {
		t.Errorf("%d files are open after Close", opened)
	}
}

// FuzzSplit looks up addresses in a program, a .dwo file or package, and a supplementary file, all
// with any bytes.
func FuzzSplit(f *testing.F) {
	s := newSplitSample()
	x := index(5, 4, sampleID, 1, [3]uint32{}, [3]uint32{uint32(len(s.info)), uint32(len(s.abbrev)), 16})
	f.Add(s.sec.data[secInfo], s.sec.data[secAbbrev], s.sec.data[secAddr], s.info, s.abbrev, s.str, s.offsets, []byte{}, x, true)
	f.Add(s.sec.data[secInfo], s.sec.data[secAbbrev], s.sec.data[secAddr], s.info, s.abbrev, s.str, s.offsets, []byte{}, []byte{}, false)
	sec, alt := altSample(formGNURefAlt, 12)
	f.Add(sec.data[secInfo], sec.data[secAbbrev], []byte{}, alt[0].data, alt[1].data, alt[2].data, []byte{}, []byte{}, []byte{}, false)
	f.Fuzz(func(t *testing.T, info, abbrev, addr, splitInfo, splitAbbrev, str, offsets, listing, index []byte, packed bool) {
		defer fuzztest.Watch(t, [][]byte{info, abbrev, addr, splitInfo, splitAbbrev, str, offsets, listing, index})()
		s := splitSample{info: splitInfo, abbrev: splitAbbrev, str: str, offsets: offsets, listing: listing}
		s.sec.data[secInfo], s.sec.data[secAbbrev], s.sec.data[secAddr] = info, abbrev, addr
		exerciseSplit(t, &s, index, packed)
	})
}
