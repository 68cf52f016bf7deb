package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/unpack"
)

// xzOf compresses data with the xz library. dictionary is the size of the dictionary in bytes.
func xzOf(t testing.TB, data []byte, dictionary int) string {
	t.Helper()
	var b bytes.Buffer
	w, err := xz.WriterConfig{DictCap: dictionary, CheckSum: xz.CRC32}.NewWriter(&b)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// miniFile is plainImage with its symbols moved to MiniDebugInfo.
func miniFile(t testing.TB, m image) []byte {
	whole := plainImage(t, m)
	inner := whole.bytes(t)
	outer := whole
	outer.sections = nil
	for _, s := range whole.sections {
		if s.Name != ".symtab" && s.Name != ".strtab" {
			outer.sections = append(outer.sections, s)
		}
	}
	outer.sections = append(outer.sections, imageSection{Section{Name: miniSection, Type: 1}, xzOf(t, inner, 1<<16)})
	return outer.bytes(t)
}

func TestMiniDebugInfoNamesWhatIsLeft(t *testing.T) {
	for _, m := range layouts {
		f, err := openBytes(miniFile(t, m))
		if err != nil {
			t.Fatal(err)
		}
		before := f.Footprint()
		sym, ok := f.Symbol(0x1004)
		if string(sym.Name) != "f" || sym.Addr != 0x1000 || !ok {
			t.Errorf("%s: Symbol = %s %#x, %v; want f 0x1000", m.name(), sym.Name, sym.Addr, ok)
		}
		if grown := f.Footprint() - before; grown < 300 {
			t.Errorf("%s: the footprint grew by %d bytes, want those unpacked", m.name(), grown)
		}
		if sym, ok := f.SymbolReaching(0x1004); ok {
			t.Errorf("%s: SymbolReaching = %s; llvm-symbolizer does not read MiniDebugInfo", m.name(), sym.Name)
		}
		visit(t, f)
	}
}

// If the .symtab of a library is moved to .gnu_debugdata as by rpm's find-debuginfo, the symbols
// are found as before.
func TestMiniDebugInfoOfRealTools(t *testing.T) {
	for _, tool := range []string{"gcc", "objcopy", "strip", "xz", "nm"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip("no " + tool)
		}
	}
	dir := t.TempDir()
	source, err := filepath.Abs("testdata/small.c")
	if err != nil {
		t.Fatal(err)
	}
	script := `set -e
gcc -g -O1 -fPIC -shared -nostdlib -o whole "$1"
nm -D whole --format=posix --defined-only | awk '{print $1}' | sort >dynsyms
nm whole --format=posix --defined-only | awk '{if ($2 == "T" || $2 == "t" || $2 == "D") print $1}' | sort >funcsyms
comm -13 dynsyms funcsyms >keep_symbols
objcopy --only-keep-debug whole debug
objcopy -S --remove-section .gdb_index --remove-section .comment --keep-symbols=keep_symbols debug mini
xz mini
cp whole stripped
strip --strip-all -R .comment stripped
objcopy --add-section .gnu_debugdata=mini.xz stripped`
	cmd := exec.Command("sh", "-c", script, "sh", source)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	whole, mini := open(t, filepath.Join(dir, "whole")), open(t, filepath.Join(dir, "stripped"))
	s, _ := whole.Section(".text")
	names := make(map[string]bool)
	for addr := s.Addr; addr < s.Addr+s.Size; addr++ {
		want, wantOK := whole.Symbol(addr)
		got, ok := mini.Symbol(addr)
		if ok != wantOK || string(got.Name) != string(want.Name) || got.Addr != want.Addr || got.Size != want.Size {
			t.Errorf("Symbol(%#x) = %s, %v; want %s, %v", addr, got.Name, ok, want.Name, wantOK)
		}
		names[string(got.Name)] = true
	}
	if !names["run"] || !names["twice"] {
		t.Errorf("names: %v, want run of .dynsym and twice of MiniDebugInfo", names)
	}
	if m, err := whole.Mini(); m != nil || err != nil {
		t.Errorf("Mini of a file without it: %v, %v", m, err)
	}
}

// blockHeader returns a block header of xz with one filter.
func blockHeader(filter, size, property byte) string {
	b := []byte{2, 0, filter, size, property, 0, 0, 0}
	return string(binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)))
}

func TestXZThatCostsTooMuchIsNotUnpacked(t *testing.T) {
	const magic = "\xfd7zXZ\x00\x00\x00" + "\xff\x12\xd9\x41" // no check
	lzma2 := func(property byte) string { return blockHeader(0x21, 1, property) }
	chunk := "\xff\xff\xff\x00\x00\x5d\x00" // one byte, which claims to be 2 MiB
	tests := []struct {
		name, data string
		limit      bool
	}{
		{"a dictionary of 4 GiB", magic + lzma2(40) + "\x00\x00\x00\x00", true},
		{"a dictionary of 128 MiB", magic + lzma2(30) + "\x00\x00\x00\x00", true},
		{"many blocks with a dictionary of 64 MiB", magic + strings.Repeat(lzma2(28)+"\x00\x00\x00\x00", 100) + "\x00", true},
		{"a gigabyte", magic + lzma2(0) + strings.Repeat(chunk, 512) + "\x00\x00\x00\x00", true},
		{"64 MiB from little", magic + lzma2(0) + strings.Repeat(chunk, 32) + "\x00\x00\x00\x00\x00", true},
		{"another filter", magic + blockHeader(4, 1, 0) + "\x00\x00\x00\x00\x00", false},
		{"a block of 1,024 bytes that are not there", magic + "\xff", false},
		{"a chunk that is not there", magic + lzma2(0) + "\x01\xff\xff", false},
		{"a chunk of unknown kind", magic + lzma2(0) + "\x03\x00\x00", false},
		{"a chunk that is nonsense", magic + lzma2(0) + chunk + "\x00\x00\x00\x00\x00\x00", false},
		{"no index", magic, false},
		{"a check of unknown kind", "\xfd7zXZ\x00\x00\x02\x00\x00\x00\x00", false},
		{"no magic", "\x7fELF", false},
		{"nothing", "", false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			watch(t)
			f := fileWith(t, layouts[0], miniSection, tt.data)
			m, err := f.Mini()
			var limit *LimitError
			if m != nil || err == nil || errors.As(err, &limit) != tt.limit {
				t.Errorf("Mini() = %v, %v", m, err)
			}
			if _, again := f.Mini(); again != err {
				t.Errorf("asked again: %v, want the same error", again)
			}
			if f.Footprint() > 64<<10 {
				t.Errorf("Footprint() = %d", f.Footprint())
			}
		})
	}
}

func TestMeasureXZIsWhatXZSays(t *testing.T) {
	fuzztest.WithoutRace(t)
	data := bytes.Repeat([]byte("MiniDebugInfo of a library "), 40000)
	packed := []string{xzOf(t, data, 1<<20)}
	if _, err := exec.LookPath("xz"); err == nil {
		for _, flags := range [][]string{{"-0"}, {"-9"}, {"--check=none"}, {"--check=sha256"}, {"--block-size=100000", "-T2"}} {
			cmd := exec.Command("xz", append(flags, "-c")...)
			cmd.Stdin = bytes.NewReader(data)
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			packed = append(packed, string(out))
		}
	}
	for i, p := range packed {
		c, err := unpack.MeasureXZ([]byte(p))
		if c.Size != uint64(len(data)) || err != nil {
			t.Errorf("%d: MeasureXZ = %+v, %v; want %d", i, c, err, len(data))
		}
		if got, _, err := new(File).unpackMini([]byte(p)); !bytes.Equal(got, data) {
			t.Errorf("%d: unpackMini: %d bytes, %v", i, len(got), err)
		}
		for _, cut := range []int{1, 8, len(p) / 2, len(p) - 1, len(p) - 4} {
			if got, _, err := new(File).unpackMini([]byte(p[:cut])); err == nil {
				t.Errorf("%d: the first %d of %d bytes: %d bytes", i, cut, len(p), len(got))
			}
		}
	}
}

func FuzzMini(f *testing.F) {
	inner := plainImage(f, layouts[0]).bytes(f)
	f.Add([]byte(xzOf(f, inner, 1<<12)))
	f.Add([]byte("\xfd7zXZ\x00\x00\x00\xff\x12\xd9\x41" + blockHeader(0x21, 1, 40) + "\x00\x00\x00\x00"))
	if b, err := os.ReadFile("testdata/whole.elf"); err == nil {
		f.Add([]byte(xzOf(f, b, 1<<20)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		watch(t)
		o := fileWith(t, layouts[0], miniSection, string(data))
		m, err := o.Mini()
		if m != nil && err != nil {
			t.Errorf("Mini() = a file and %v", err)
		}
		o.Symbol(0x1000)
		if m != nil {
			visit(t, m)
		}
	})
}

// All parts of richImage must be readable: tests that damage such parts depend on it.
func TestRichImageIsReadWhole(t *testing.T) {
	for _, m := range layouts {
		f, err := openBytes(richImage(t, m).bytes(t))
		if err != nil {
			t.Fatal(err)
		}
		name, crc, ok := f.DebugLink()
		alt, id, altOK := f.AltLink()
		p, packageOK := f.PackageNote()
		if name != "a.debug" || crc != 0x12345678 || !ok || alt != "a.dwz" || len(id) != 20 || !altOK || p.Type != "deb" || !packageOK {
			t.Errorf("%s: %q %#x %v, %q %x %v, %+v %v", m.name(), name, crc, ok, alt, id, altOK, p, packageOK)
		}
		if mini, err := f.Mini(); mini == nil || err != nil {
			t.Errorf("%s: Mini() = %v, %v", m.name(), mini, err)
		}
		if len(f.SymbolsNamed("g")) != 1 || len(f.SymbolsNamed("f")) != 1 {
			t.Errorf("%s: g %v, f %v", m.name(), f.SymbolsNamed("g"), f.SymbolsNamed("f"))
		}
		if !m.big && m.machine != elf.EM_ARM {
			if start, end, ok := f.UnwindRange(0x1008); start != 0x1000 || end != 0x1010 || !ok {
				t.Errorf("%s: UnwindRange = %#x, %#x, %v", m.name(), start, end, ok)
			}
		}
		visit(t, f)
	}
}
