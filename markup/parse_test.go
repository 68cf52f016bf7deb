package markup_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/markup"
)

// parse scans line, which is one element, and parses it; the error is "" if there is none.
func parse(t *testing.T, line string) (markup.Element, string) {
	t.Helper()
	var s markup.Scanner
	s.Reset([]byte(line))
	tok, _ := s.Next()
	e, err := markup.Parse(tok)
	if err != nil {
		if e != nil {
			t.Errorf("%q: got %v and an error", line, e)
		}
		return nil, err.Error()
	}
	return e, ""
}

func id(t testing.TB, hex string) buildid.ID {
	t.Helper()
	id, err := buildid.Parse([]byte(hex))
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// ids compares build IDs, which have no exported fields.
var ids = cmp.Comparer(func(a, b buildid.ID) bool { return a == b })

// TestParse covers every form in the spec, and forms of real emitters. An element must print as the
// parsed line, unless printed is set.
func TestParse(t *testing.T) {
	for _, tt := range []struct {
		line    string
		want    markup.Element
		printed string // "" for line
	}{
		// The spec's examples.
		{"{{{symbol:_ZN7Mangled4NameEv}}}", markup.Symbol{Name: "_ZN7Mangled4NameEv"}, ""},
		{"{{{symbol:foobar}}}", markup.Symbol{Name: "foobar"}, ""},
		{"{{{pc:0x12345678}}}", markup.PC{Addr: 0x12345678}, ""},
		{"{{{pc:0xffffffff9abcdef0}}}", markup.PC{Addr: 0xffffffff9abcdef0}, ""},
		{"{{{pc:0x12345678:ra}}}", markup.PC{Addr: 0x12345678, Kind: markup.ReturnAddress}, ""},
		{"{{{pc:0x12345678:pc}}}", markup.PC{Addr: 0x12345678, Kind: markup.Precise}, ""},
		{"{{{data:0x12345678}}}", markup.Data{Addr: 0x12345678}, ""},
		{"{{{data:0xffffffff9abcdef0}}}", markup.Data{Addr: 0xffffffff9abcdef0}, ""},
		{"{{{bt:0:0x12345678:pc}}}", markup.BT{Frame: 0, Addr: 0x12345678, Kind: markup.Precise}, ""},
		{"{{{bt:1:0xffffffff9abcdef0:ra}}}", markup.BT{Frame: 1, Addr: 0xffffffff9abcdef0, Kind: markup.ReturnAddress}, ""},
		{"{{{bt:12:0x12345678}}}", markup.BT{Frame: 12, Addr: 0x12345678}, ""},
		{"{{{dumpfile:sancov:sancov.8675}}}", markup.DumpFile{Type: "sancov", Name: "sancov.8675"}, ""},
		{"{{{reset}}}", markup.Reset{}, ""},
		{"{{{module:1:libc.so:elf:83238ab56ba10497}}}", markup.Module{ID: 1, Name: "libc.so", BuildID: id(t, "83238ab56ba10497")}, ""},
		{"{{{mmap:0x7acba69d5000:0x5a000:load:1:rx:0x1000}}}", markup.MMap{Addr: 0x7acba69d5000, Size: 0x5a000, Module: 1, Mode: markup.Read | markup.Exec, Rel: 0x1000}, ""},
		{"{{{hexdict:\n  CS:                   0 RIP:     0x6ee17076fb80\n}}}", markup.HexDict{Body: "\n  CS:                   0 RIP:     0x6ee17076fb80\n"}, ""},

		// Addresses.
		{"{{{pc:0}}}", markup.PC{}, "{{{pc:0x00}}}"},
		{"{{{pc:0000000000000000}}}", markup.PC{}, "{{{pc:0x00}}}"},
		{"{{{pc:0x0}}}", markup.PC{}, "{{{pc:0x00}}}"},
		{"{{{pc:0x123}}}", markup.PC{Addr: 0x123}, "{{{pc:0x0123}}}"},
		{"{{{pc:0XABcd}}}", markup.PC{Addr: 0xabcd}, "{{{pc:0xabcd}}}"},
		{"{{{pc:0x000000000000000012}}}", markup.PC{Addr: 0x12}, "{{{pc:0x12}}}"},
		{"{{{pc:0xffffffffffffffff}}}", markup.PC{Addr: 1<<64 - 1}, ""},

		// Further fields.
		{"{{{bt:1:0x12:sp 0x3f540e65ef0}}}", markup.BT{Frame: 1, Addr: 0x12, Message: "sp 0x3f540e65ef0"}, ""},
		{"{{{bt:0:0x12:pc:from CFI}}}", markup.BT{Addr: 0x12, Kind: markup.Precise, Message: "from CFI"}, ""},
		{"{{{bt:0:0x12:}}}", markup.BT{Addr: 0x12}, "{{{bt:0:0x12}}}"},
		{"{{{bt:0:0x12::ra}}}", markup.BT{Addr: 0x12, Message: ":ra"}, ""},
		{"{{{bt:0:0x12:raw}}}", markup.BT{Addr: 0x12, Message: "raw"}, ""},
		{"{{{bt:0:0x12:RA}}}", markup.BT{Addr: 0x12, Message: "RA"}, ""},
		{"{{{bt:0:0x12:ra::x:y}}}", markup.BT{Addr: 0x12, Kind: markup.ReturnAddress, Message: ":x:y"}, ""},
		{"{{{pc:0x12:ra:x}}}", markup.PC{Addr: 0x12, Kind: markup.ReturnAddress}, "{{{pc:0x12:ra}}}"},
		{"{{{data:0x12:x}}}", markup.Data{Addr: 0x12}, "{{{data:0x12}}}"},
		{"{{{reset:begin}}}", markup.Reset{Extra: "begin"}, ""},
		{"{{{reset:end:x}}}", markup.Reset{Extra: "end"}, "{{{reset:end}}}"},
		{"{{{reset:other}}}", markup.Reset{}, "{{{reset}}}"},
		{"{{{reset:}}}", markup.Reset{}, "{{{reset}}}"},
		{"{{{dumpfile:a:b:c}}}", markup.DumpFile{Type: "a", Name: "b"}, "{{{dumpfile:a:b}}}"},
		{"{{{dumpfile::}}}", markup.DumpFile{}, ""},
		{"{{{symbol:a:b}}}", markup.Symbol{Name: "a"}, "{{{symbol:a}}}"},

		// Frame numbers.
		{"{{{bt:007:0x12}}}", markup.BT{Frame: 7, Addr: 0x12}, "{{{bt:7:0x12}}}"},
		{"{{{bt:18446744073709551615:0x12}}}", markup.BT{Frame: 1<<64 - 1, Addr: 0x12}, ""},

		// Symbols.
		{"{{{symbol:}}}", markup.Symbol{}, ""},
		{"{{{symbol: f }}}", markup.Symbol{Name: " f "}, ""},
		{"{{{symbol:{{{}}}", markup.Symbol{Name: "{{{"}, ""},
		{"{{{symbol:\x1b}}}", markup.Symbol{Name: "\x1b"}, ""},
		{"{{{symbol:ns::f(int)}}}", markup.Symbol{Name: "ns::f(int)"}, ""},
		{"{{{symbol:::f}}}", markup.Symbol{Name: "::f"}, ""},
		{"{{{symbol:f::}}}", markup.Symbol{Name: "f"}, "{{{symbol:f}}}"},
		{"{{{symbol:f:::g}}}", markup.Symbol{Name: "f"}, "{{{symbol:f}}}"},
		{"{{{symbol:?foo@@YAXXZ}}}", markup.Symbol{Name: "?foo@@YAXXZ"}, ""},

		// Modules.
		{"{{{module:0::elf:aa}}}", markup.Module{BuildID: id(t, "aa")}, ""},
		{"{{{module:0x10:a:elf:aa}}}", markup.Module{ID: 16, Name: "a", BuildID: id(t, "aa")}, "{{{module:16:a:elf:aa}}}"},
		{"{{{module:010:a:elf:aa}}}", markup.Module{ID: 8, Name: "a", BuildID: id(t, "aa")}, "{{{module:8:a:elf:aa}}}"},
		{"{{{module:18446744073709551615:a:elf:aa}}}", markup.Module{ID: 1<<64 - 1, Name: "a", BuildID: id(t, "aa")}, ""},
		{"{{{module:01777777777777777777777:a:elf:aa}}}", markup.Module{ID: 1<<64 - 1, Name: "a", BuildID: id(t, "aa")}, "{{{module:18446744073709551615:a:elf:aa}}}"},
		{"{{{module:0:a:elf:" + strings.Repeat("a", 128) + "}}}", markup.Module{Name: "a", BuildID: id(t, strings.Repeat("a", 128))}, ""},
		{"{{{module:0:a:elf:ABC}}}", markup.Module{Name: "a", BuildID: id(t, "0abc")}, "{{{module:0:a:elf:0abc}}}"},
		{"{{{module:0:a:elf:aa:extra}}}", markup.Module{Name: "a", BuildID: id(t, "aa")}, "{{{module:0:a:elf:aa}}}"},
		{"{{{module:0:a:elf:aa:extra:elf:no}}}", markup.Module{Name: "a", BuildID: id(t, "aa")}, "{{{module:0:a:elf:aa}}}"},
		{"{{{module:2:<VMO#16651=bootfs:blob/29>:elf:cd01d7d4}}}", markup.Module{ID: 2, Name: "<VMO#16651=bootfs:blob/29>", BuildID: id(t, "cd01d7d4")}, ""},
		{"{{{module:2:a:elf:aa:elf:bb}}}", markup.Module{ID: 2, Name: "a:elf:aa", BuildID: id(t, "bb")}, ""},
		{"{{{module:2:a:elf:elf:bb}}}", markup.Module{ID: 2, Name: "a:elf", BuildID: id(t, "bb")}, ""},
		{"{{{module:2:/opt/my app/\xff/lib.so:elf:bb}}}", markup.Module{ID: 2, Name: "/opt/my app/\xff/lib.so", BuildID: id(t, "bb")}, ""},

		// Maps.
		{"{{{mmap:0x000000b2eb7000:0x1f280:load:0:r:0000000000000000}}}", markup.MMap{Addr: 0xb2eb7000, Size: 0x1f280, Mode: markup.Read}, "{{{mmap:0xb2eb7000:0x1f280:load:0:r:0x00}}}"},
		{"{{{mmap:0x562eeccc85a0:0x9574c0:load:0:rw:0x1435a0}}}", markup.MMap{Addr: 0x562eeccc85a0, Size: 0x9574c0, Mode: markup.Read | markup.Write, Rel: 0x1435a0}, ""},
		{"{{{mmap:0x10:4096:load:0x1:RWX:0x00}}}", markup.MMap{Addr: 0x10, Size: 4096, Module: 1, Mode: markup.Read | markup.Write | markup.Exec}, "{{{mmap:0x10:0x1000:load:1:rwx:0x00}}}"},
		{"{{{mmap:0x10:010:load:1:xr:0x00}}}", markup.MMap{Addr: 0x10, Size: 8, Module: 1, Mode: markup.Read | markup.Exec}, "{{{mmap:0x10:0x8:load:1:rx:0x00}}}"},
		{"{{{mmap:0x10:0:load:1:r--p:0x00}}}", markup.MMap{Addr: 0x10, Module: 1, Mode: markup.Read}, "{{{mmap:0x10:0x0:load:1:r:0x00}}}"},
		{"{{{mmap:0x10:1:load:1:---p:0x00}}}", markup.MMap{Addr: 0x10, Size: 1, Module: 1}, "{{{mmap:0x10:0x1:load:1:-:0x00}}}"},
		{"{{{mmap:0x10:1:load:1:rwxs:0x00:extra}}}", markup.MMap{Addr: 0x10, Size: 1, Module: 1, Mode: 7}, "{{{mmap:0x10:0x1:load:1:rwx:0x00}}}"},
		{"{{{mmap:0xffffffffffff0000:0xffffffffffffffff:load:1:r:0xffffffffffffffff}}}", markup.MMap{Addr: 0xffffffffffff0000, Size: 1<<64 - 1, Module: 1, Mode: markup.Read, Rel: 1<<64 - 1}, ""},
	} {
		got, err := parse(t, tt.line)
		if diff := cmp.Diff(tt.want, got, ids); diff != "" || err != "" {
			t.Errorf("%q: %s (-want +got):\n%s", tt.line, err, diff)
			continue
		}
		want := tt.printed
		if want == "" {
			want = tt.line
		}
		if printed := string(got.AppendMarkup([]byte("x"))); printed != "x"+want {
			t.Errorf("%q prints as %q, want %q", tt.line, printed[1:], want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, tt := range []struct{ line, want string }{
		{"{{{pc}}}", "pc: expected an address, found nothing"},
		{"{{{pc:}}}", "pc: expected an address, found nothing"},
		{"{{{pc:12}}}", `pc: expected an address, found "12"`},
		{"{{{pc:0x}}}", `pc: expected an address, found "0x"`},
		{"{{{pc:0x:ra}}}", `pc: expected an address, found "0x"`},
		{"{{{pc:0xg}}}", `pc: expected an address, found "0xg"`},
		{"{{{pc:0x12 }}}", `pc: expected an address, found "0x12 "`},
		{"{{{pc: 0x12}}}", `pc: expected an address, found " 0x12"`},
		{"{{{pc:-0x12}}}", `pc: expected an address, found "-0x12"`},
		{"{{{pc:0x10000000000000000}}}", `pc: expected an address, found "0x10000000000000000"`},
		{"{{{pc:0\x1b\n}}}", `pc: expected an address, found "0\x1b\n"`},
		{"{{{data:x}}}", `data: expected an address, found "x"`},
		{"{{{bt:0}}}", "bt: expected an address, found nothing"},
		{"{{{bt:0:}}}", "bt: expected an address, found nothing"},
		{"{{{bt::0x1}}}", "bt: expected a frame number, found nothing"},
		{"{{{bt:0x1:0x1}}}", `bt: expected a frame number, found "0x1"`},
		{"{{{bt:-1:0x1}}}", `bt: expected a frame number, found "-1"`},
		{"{{{bt:18446744073709551616:0x1}}}", `bt: expected a frame number, found "18446744073709551616"`},
		{"{{{symbol}}}", "symbol: expected a name, found nothing"},
		{"{{{symbol:a\nb}}}", `symbol: expected a name without } or line end, found "a\nb"`},
		{"{{{dumpfile:a}}}", "dumpfile: expected a dump's name, found nothing"},
		{"{{{dumpfile}}}", "dumpfile: expected a dump's name, found nothing"},
		{"{{{dumpfile:a\n:b}}}", `dumpfile: expected a dump's type without } or line end, found "a\n"`},
		{"{{{dumpfile:a:b\n}}}", `dumpfile: expected a dump's name without } or line end, found "b\n"`},
		{"{{{module}}}", "module: expected a module ID, found nothing"},
		{"{{{module:x:a:elf:aa}}}", `module: expected a module ID, found "x"`},
		{"{{{module:079:a:elf:aa}}}", `module: expected a module ID, found "079"`},
		{"{{{module:0x:a:elf:aa}}}", `module: expected a module ID, found "0x"`},
		{"{{{module:-1:a:elf:aa}}}", `module: expected a module ID, found "-1"`},
		{"{{{module:02000000000000000000000:a:elf:aa}}}", `module: expected a module ID, found "02000000000000000000000"`},
		{"{{{module:18446744073709551616:a:elf:aa}}}", `module: expected a module ID, found "18446744073709551616"`},
		{"{{{module:0}}}", "module: expected a module name, found nothing"},
		{"{{{module:0:a}}}", "module: expected module type elf, found nothing"},
		{"{{{module:0:a:}}}", "module: expected module type elf, found nothing"},
		{"{{{module:0:a:pe:aa}}}", `module: expected module type elf, found "pe"`},
		{"{{{module:0:elf:aa}}}", `module: expected module type elf, found "aa"`},
		{"{{{module:0:a:elf}}}", "module: expected a build ID, found nothing"},
		{"{{{module:0:a:elf:}}}", "module: expected a build ID, found nothing"},
		{"{{{module:0:a:elf::aa}}}", "module: expected a build ID, found nothing"},
		{"{{{module:0:a:elf:" + strings.Repeat("a", 129) + "}}}", `module: expected a build ID, found "` + strings.Repeat("a", 64) + `…"`},
		{"{{{module:0:a:elf:0xaa}}}", `module: expected a build ID, found "0xaa"`},
		{"{{{module:0:a:elf:aa g:x}}}", `module: expected a build ID, found "aa g"`},
		{"{{{module:0:a\nb:elf:aa}}}", `module: expected a module name without } or line end, found "a\nb"`},
		{"{{{mmap}}}", "mmap: expected an address, found nothing"},
		{"{{{mmap:1:1:load:0:r:0}}}", `mmap: expected an address, found "1"`},
		{"{{{mmap:0x1}}}", "mmap: expected a size, found nothing"},
		{"{{{mmap:0x1:ten:load:0:r:0}}}", `mmap: expected a size, found "ten"`},
		{"{{{mmap:0x1:1}}}", "mmap: expected mmap type load, found nothing"},
		{"{{{mmap:0x1:1:file:0:r:0}}}", `mmap: expected mmap type load, found "file"`},
		{"{{{mmap:0x1:1:load}}}", "mmap: expected a module ID, found nothing"},
		{"{{{mmap:0x1:1:load:a:r:0}}}", `mmap: expected a module ID, found "a"`},
		{"{{{mmap:0x1:1:load:0}}}", "mmap: expected a mode made of r, w and x, found nothing"},
		{"{{{mmap:0x1:1:load:0::0}}}", "mmap: expected a mode made of r, w and x, found nothing"},
		{"{{{mmap:0x1:1:load:0:rg:0}}}", `mmap: expected a mode made of r, w and x, found "rg"`},
		{"{{{mmap:0x1:1:load:0:r}}}", "mmap: expected a module-relative address, found nothing"},
		{"{{{mmap:0x1:1:load:0:r:7}}}", `mmap: expected a module-relative address, found "7"`},
		{"{{{foo:bar}}}", `markup: expected a known element, found "{{{foo:bar}}}"`},
		{"text", `markup: expected a known element, found "text"`},
	} {
		if _, got := parse(t, tt.line); got != tt.want {
			t.Errorf("%q: got %q, want %q", tt.line, got, tt.want)
		}
	}
}

// TestParseOffsets parses tokens that no Scanner has checked. The offsets of errors are relative to
// the line.
func TestParseOffsets(t *testing.T) {
	for _, tt := range []struct {
		tag    markup.Tag
		fields []byte
		off    int
		want   int
	}{
		{markup.TagBT, []byte("0:x"), 100, 108},
		{markup.TagBT, []byte{}, 100, 106},
		{markup.TagBT, nil, 100, 105},
		{markup.TagHexDict, []byte("A: 0 }"), 10, 26},
	} {
		e, err := markup.Parse(markup.Token{Kind: markup.Elem, Tag: tt.tag, Fields: tt.fields, Off: tt.off})
		if e != nil || err == nil || err.Off != tt.want {
			t.Errorf("%v %q: got %v, %+v, want an error at %d", tt.tag, tt.fields, e, err, tt.want)
		}
	}
}

// TestParseFields calls ParseAs. The offsets of errors are relative to the fields, and values with
// errors are zero.
func TestParseFields(t *testing.T) {
	check := func(fields string, got markup.Element, err *markup.SyntaxError, want markup.Element, off int) {
		t.Helper()
		if diff := cmp.Diff(want, got, ids); diff != "" {
			t.Errorf("%q (-want +got):\n%s", fields, diff)
		}
		if (err == nil) != (off < 0) || err != nil && err.Off != off {
			t.Errorf("%q: got error %+v, want offset %d", fields, err, off)
		}
	}
	for _, tt := range []struct {
		tag    markup.Tag
		fields string
		want   markup.Element
		off    int
	}{
		{markup.TagReset, "end", markup.Reset{Extra: "end"}, -1},
		{markup.TagModule, "0:a:elf:aa", markup.Module{Name: "a", BuildID: id(t, "aa")}, -1},
		{markup.TagModule, "0:a:elf:x", markup.Module{}, 8},
		{markup.TagMMap, "0x1:2:load:3:r:0x4", markup.MMap{Addr: 1, Size: 2, Module: 3, Mode: markup.Read, Rel: 4}, -1},
		{markup.TagMMap, "0x1:2:load:3:r:4", markup.MMap{}, 15},
		{markup.TagPC, "0x1", markup.PC{Addr: 1}, -1},
		{markup.TagPC, "1", markup.PC{}, 0},
		{markup.TagBT, "1:0x1", markup.BT{Frame: 1, Addr: 1}, -1},
		{markup.TagBT, "1:1", markup.BT{}, 2},
		{markup.TagData, "0x1", markup.Data{Addr: 1}, -1},
		{markup.TagData, "1", markup.Data{}, 0},
		{markup.TagSymbol, "f", markup.Symbol{Name: "f"}, -1},
		{markup.TagSymbol, "f}", markup.Symbol{}, 0},
		{markup.TagHexDict, "A:0", markup.HexDict{Body: "A:0"}, -1},
		{markup.TagHexDict, "A:0}", markup.HexDict{}, 3},
		{markup.TagDumpFile, "a:b", markup.DumpFile{Type: "a", Name: "b"}, -1},
		{markup.TagDumpFile, "a:b}", markup.DumpFile{}, 2},
	} {
		f := []byte(tt.fields)
		switch tt.tag {
		case markup.TagReset:
			got, err := markup.ParseAs[markup.Reset](f)
			check(tt.fields, got, err, tt.want, tt.off)
		case markup.TagModule:
			got, err := markup.ParseAs[markup.Module](f)
			check(tt.fields, got, err, tt.want, tt.off)
		case markup.TagMMap:
			got, err := markup.ParseAs[markup.MMap](f)
			check(tt.fields, got, err, tt.want, tt.off)
		case markup.TagPC:
			got, err := markup.ParseAs[markup.PC](f)
			check(tt.fields, got, err, tt.want, tt.off)
		case markup.TagBT:
			got, err := markup.ParseAs[markup.BT](f)
			check(tt.fields, got, err, tt.want, tt.off)
		case markup.TagData:
			got, err := markup.ParseAs[markup.Data](f)
			check(tt.fields, got, err, tt.want, tt.off)
		case markup.TagSymbol:
			got, err := markup.ParseAs[markup.Symbol](f)
			check(tt.fields, got, err, tt.want, tt.off)
		case markup.TagHexDict:
			got, err := markup.ParseAs[markup.HexDict](f)
			check(tt.fields, got, err, tt.want, tt.off)
		case markup.TagDumpFile:
			got, err := markup.ParseAs[markup.DumpFile](f)
			check(tt.fields, got, err, tt.want, tt.off)
		}
	}
}

func TestParsingAddressesAllocatesNothing(t *testing.T) {
	bt, mmap, pc, data := []byte("3:0x7f0012345678:ra"), []byte("0x7acba69d5000:0x5a000:load:1:rx:0x1000"), []byte("0x1:pc"), []byte("0x1")
	if n := testing.AllocsPerRun(100, func() {
		markup.ParseAs[markup.BT](bt)
		markup.ParseAs[markup.MMap](mmap)
		markup.ParseAs[markup.PC](pc)
		markup.ParseAs[markup.Data](data)
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func TestPairs(t *testing.T) {
	for _, tt := range []struct {
		name, body string
		want       []markup.Pair
	}{
		{"the spec's form", "\n  CS:    0 RIP:     0x6ee17076fb80\n R8: 0X1f  ", []markup.Pair{
			{"CS", 0, 10, 11}, {"RIP", 0x6ee17076fb80, 21, 35}, {"R8", 0x1f, 41, 45}}},
		{"no blanks", "CS:0 RIP:0x12", []markup.Pair{{"CS", 0, 3, 4}, {"RIP", 0x12, 9, 13}}},
		{"prefixed lines", "\n[00135.795][1727] INFO: CS: 0 A: 0x1\n[00135.796][1727] INFO: B: 0x2\n", []markup.Pair{
			{"CS", 0, 29, 30}, {"A", 1, 34, 37}, {"B", 2, 65, 68}}},
		{"a time before", "12:34:56.7 A: 0x1", []markup.Pair{{"A", 1, 14, 17}}},
		{"no value", "A: B: 0x1 C:", []markup.Pair{{"B", 1, 6, 9}}},
		{"no key", ": 0x1 0x2 A 0x3", nil},
		{"values of another form", "A: 12 B: 0x C: 0x10000000000000000 D: -1 E: 00", []markup.Pair{{"E", 0, 44, 46}}},
		{"a key for one value", "A: 0x1 0x2", []markup.Pair{{"A", 1, 3, 6}}},
		{"nothing", "", nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got []markup.Pair
			for p := range (markup.HexDict{Body: tt.body}).Pairs() {
				got = append(got, p)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%q (-want +got):\n%s", tt.body, diff)
			}
		})
	}
	for range (markup.HexDict{Body: "A: 0x1 B: 0x2"}).Pairs() {
		break
	}
}
