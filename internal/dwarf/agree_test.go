package dwarf

import (
	"bytes"
	"context"
	"debug/elf"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/symfilter/symfilter/internal/fuzztest"
	"github.com/symfilter/symfilter/internal/object"
	"github.com/symfilter/symfilter/internal/testenv"
)

// llvmSymbolizer is the program with whose answers TestAgreement compares ours.
const llvmSymbolizer = "llvm-symbolizer-19"

const (
	agreeAddresses = 20000 // random code addresses in all x86-64 fixtures together; a fifth in short runs
	agreeElsewhere = 500   // random code addresses in each fixture for another machine
	agreeRatio     = 0.999 // fraction of the frames that must be equal
)

// A fixture is a build of testdata/agree. A freestanding fixture is built from plain.c alone,
// without a C library.
type fixture struct {
	name         string
	cc, cxx      string // cxx is empty for a freestanding fixture
	flags, links string
	twice        bool // two units have functions in common
	elsewhere    bool // not for x86-64
	after        func(t *testing.T, dir string)
	long         bool   // built only in long runs, since it adds little to the others
	like         string // program made by after, which llvm-symbolizer reads instead of prog
}

var fixtures = []fixture{
	{name: "gcc dwarf5 O2 gc-sections", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true},
	{long: true, name: "gcc dwarf4 O1", cc: "gcc", cxx: "g++", flags: "-gdwarf-4 -O1"},
	{name: "gcc dwarf5 O0", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -O0"},
	{long: true, name: "gcc dwarf5 64-bit O2", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -gdwarf64 -O2"},
	{name: "gcc dwarf2 O2", cc: "gcc", cxx: "g++", flags: "-gdwarf-2 -O2"},
	{name: "clang dwarf5 O2 lld gc-sections", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -O2 -ffunction-sections", links: "-fuse-ld=lld -Wl,--gc-sections", twice: true},
	{name: "clang dwarf4 O2 aranges gc-sections", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-4 -gdwarf-aranges -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true},
	{long: true, name: "clang dwarf5 split, no dwo", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -gsplit-dwarf -O2", links: "", after: removeDwo},
	{long: true, name: "clang dwarf5 split", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -gsplit-dwarf -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true},
	{long: true, name: "clang dwarf4 split", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-4 -gsplit-dwarf -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true},
	{long: true, name: "clang dwarf5 split, 64-bit", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -gdwarf64 -gsplit-dwarf -O2"},
	{long: true, name: "clang dwarf5 split, type units", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -gsplit-dwarf -fdebug-types-section -fsplit-dwarf-inlining -O2"},
	{long: true, name: "gcc dwarf5 split", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -gsplit-dwarf -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true},
	{name: "gcc dwarf5 split, type units", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -gsplit-dwarf -fdebug-types-section -O2"},
	{long: true, name: "gcc dwarf4 split, type units", cc: "gcc", cxx: "g++", flags: "-gdwarf-4 -gsplit-dwarf -fdebug-types-section -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true},
	{long: true, name: "gcc dwarf5 split, compressed", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -gsplit-dwarf -gz -O2"},
	{long: true, name: "gcc dwarf4 split O0", cc: "gcc", cxx: "g++", flags: "-gdwarf-4 -gsplit-dwarf -O0"},
	{name: "clang dwarf5 split, link-time optimised", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -gsplit-dwarf -O2 -flto", links: "-gdwarf-5 -gsplit-dwarf -O2 -flto -fuse-ld=lld -Wl,--plugin-opt=dwo_dir=dwos", twice: true},
	{long: true, name: "clang dwarf5 addresses by offset", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -O2 -ffunction-sections -mllvm -minimize-addr-in-v5=Form"},
	{long: true, name: "clang dwarf5 addresses by ranges", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -gsplit-dwarf -O2 -mllvm -minimize-addr-in-v5=Ranges"},
	{name: "clang dwarf5 package", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -gsplit-dwarf -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true, after: pack("llvm-dwp-19")},
	{long: true, name: "clang dwarf5 package, type units", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -gsplit-dwarf -fdebug-types-section -O2", after: pack("llvm-dwp-19")},
	{long: true, name: "clang dwarf4 package", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-4 -gsplit-dwarf -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true, after: pack("llvm-dwp-19")},
	{name: "gcc dwarf4 package, type units", cc: "gcc", cxx: "g++", flags: "-gdwarf-4 -gsplit-dwarf -fdebug-types-section -O2", after: pack("dwp")},
	{long: true, name: "gcc dwarf5 type units", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -fdebug-types-section -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true},
	{long: true, name: "gcc dwarf4 type units", cc: "gcc", cxx: "g++", flags: "-gdwarf-4 -fdebug-types-section -O2"},
	{long: true, name: "clang dwarf4 type units", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-4 -fdebug-types-section -O2"},
	{long: true, name: "gcc link-time optimised", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -O2 -flto -ffat-lto-objects", links: "-gdwarf-5 -O2 -flto", twice: true},
	{long: true, name: "clang link-time optimised", cc: "clang-19", cxx: "clang-19 -x c++", flags: "-gdwarf-5 -O2 -flto", links: "-gdwarf-5 -O2 -flto -fuse-ld=lld", twice: true},
	{long: true, name: "gcc dwarf4, strict, no aranges", cc: "gcc", cxx: "g++", flags: "-gdwarf-4 -gstrict-dwarf -O2 -ffunction-sections", links: "-Wl,--gc-sections", twice: true, after: removeSection(".debug_aranges")},
	{long: true, name: "gcc dwarf5 partial units", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -O2", after: dwz(""), like: "plain", twice: true},
	{long: true, name: "gcc dwarf5 supplementary file", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -O2", after: dwz("-m"), like: "plain", twice: true},
	{long: true, name: "gcc dwarf4 supplementary file", cc: "gcc", cxx: "g++", flags: "-gdwarf-4 -O2", after: dwz("-m"), like: "plain", twice: true},
	{name: "gcc dwarf5 supplementary file, .debug_sup", cc: "gcc", cxx: "g++", flags: "-gdwarf-5 -O2", after: dwz("--dwarf-5 -m"), like: "plain", twice: true},
	{name: "aarch64 gcc dwarf5 O2", cc: "aarch64-linux-gnu-gcc", cxx: "aarch64-linux-gnu-g++", flags: "-gdwarf-5 -O2", elsewhere: true},
	{name: "mips big-endian dwarf5", cc: "clang-19", flags: "--target=mips-linux-gnu -gdwarf-5 -O2 -fno-pic -mno-abicalls", elsewhere: true},
	{name: "ppc64 big-endian dwarf3", cc: "clang-19", flags: "--target=powerpc64-linux-gnu -mabi=elfv2 -gdwarf-3 -O2", elsewhere: true},
	{name: "i386 dwarf4 64-bit dwarf aranges", cc: "clang-19", flags: "--target=i386-linux-gnu -gdwarf-4 -gdwarf-aranges -O1", elsewhere: true},
}

func removeDwo(t *testing.T, dir string) {
	names, err := filepath.Glob(filepath.Join(dir, "*.dwo"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no .dwo files in %s", dir)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

// long reports whether TEST_LONG=1 is set, for the full number of addresses and fixtures.
func long() bool { return os.Getenv("TEST_LONG") == "1" }

// inDir runs a command in dir. TESTDATA in the command is the path of the folder testdata, which
// may have blanks.
func inDir(t *testing.T, dir, command string) {
	t.Helper()
	testdata, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	args := strings.Fields(command)
	for i := range args {
		args[i] = strings.ReplaceAll(args[i], "TESTDATA", testdata)
	}
	need(t, args[0])
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
}

// pack packs the .dwo files into prog.dwp, and removes them.
func pack(tool string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		inDir(t, dir, tool+" -e prog -o prog.dwp")
		removeDwo(t, dir)
	}
}

func removeSection(name string) func(*testing.T, string) {
	return func(t *testing.T, dir string) { inDir(t, dir, "objcopy -R "+name+" prog") }
}

// dwz compresses the debug information of prog with dwz, and keeps the original as plain. With
// "-m", dwz moves the debug information that prog shares with its copy, the file other, to
// prog.alt.
func dwz(flags string) func(*testing.T, string) {
	return func(t *testing.T, dir string) {
		inDir(t, dir, "cp prog plain")
		inDir(t, dir, "cp prog other")
		if strings.HasSuffix(flags, "-m") {
			inDir(t, dir, "dwz "+flags+" prog.alt -h prog other")
		} else {
			inDir(t, dir, "dwz "+flags+" prog")
		}
	}
}

// linksOf opens the files next to a program: its package, .dwo files and supplementary file.
func linksOf(t *testing.T, path string) testLinks {
	open := func(path string) Linked {
		f, err := os.Open(path)
		if err != nil {
			return Linked{}
		}
		defer f.Close()
		data, err := io.ReadAll(f)
		if err != nil {
			t.Fatal(err)
		}
		o, err := object.Open(bytes.NewReader(data), int64(len(data)), nil)
		if err != nil {
			t.Fatal(err)
		}
		return Linked{o, func() { o.Close() }}
	}
	return testLinks{open(path + ".alt").Object, Links{
		Package: func() Linked { return open(path + ".dwp") },
		Split: func(dir, name string, holds func(*object.File) bool) Linked {
			l := open(filepath.Join(dir, name))
			if l.Object != nil && !holds(l.Object) {
				t.Errorf("%s: another ID", name)
				l.Close()
				return Linked{}
			}
			return l
		},
	}}
}

// testLinks holds Links and the supplementary file, if any.
type testLinks struct {
	alt *object.File
	Links
}

// open returns the debug information of o.
func (l testLinks) open(t *testing.T, o *object.File) *Data {
	t.Helper()
	d, err := New(o, l.Links)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(d.Close)
	if l.alt != nil {
		d.UseAlt(l.alt)
	}
	return d
}

func need(t *testing.T, tools ...string) {
	t.Helper()
	testenv.Need(t, tools...)
}

// build compiles the fixture and returns the path of the program.
func (f fixture) build(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	run := func(command string) { t.Helper(); inDir(t, dir, command) }
	need(t, f.cc)
	if f.cxx == "" {
		run(fmt.Sprintf("%s %s -nostdlib -static -fuse-ld=lld -Wl,-e,plain TESTDATA/agree/plain.c -o prog", f.cc, f.flags))
		return filepath.Join(dir, "prog")
	}
	need(t, strings.Fields(f.cxx)[0])
	objects, alone := "main.o plain.o shapes1.o", "-DALONE"
	if f.twice {
		run(fmt.Sprintf("%s %s -DUNIT=2 -c TESTDATA/agree/shapes.cc -o shapes2.o", f.cxx, f.flags))
		objects, alone = objects+" shapes2.o", ""
	}
	run(fmt.Sprintf("%s %s -DUNIT=1 -c TESTDATA/agree/shapes.cc -o shapes1.o", f.cxx, f.flags))
	run(fmt.Sprintf("%s %s %s -c TESTDATA/agree/main.cc -o main.o", f.cxx, f.flags, alone))
	run(fmt.Sprintf("%s %s -c TESTDATA/agree/plain.c -o plain.o", f.cc, f.flags))
	run(fmt.Sprintf("%s %s %s -lstdc++ -lm -o prog", f.cc, objects, f.links))
	if f.after != nil {
		f.after(t, dir)
	}
	return filepath.Join(dir, "prog")
}

// openObject opens an ELF file until the end of the test.
func openObject(t testing.TB, path string) *object.File {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	o, err := object.Open(f, info.Size(), f)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { o.Close(); f.Close() })
	return o
}

// codeAddresses returns n random addresses in symbols of executable sections. They are the same for
// the same file.
func codeAddresses(t testing.TB, o *object.File, n int) []uint64 {
	t.Helper()
	var code []object.Section
	var total uint64
	for _, s := range o.Sections() {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Flags&elf.SHF_ALLOC != 0 && s.Size > 0 {
			code = append(code, s)
			total += s.Size
		}
	}
	if total == 0 {
		t.Fatal("no code")
	}
	r := rand.New(rand.NewPCG(1, 2))
	var addrs []uint64
	for tries := 0; len(addrs) < n; tries++ {
		if tries > 100*n {
			t.Fatal("no symbols of code")
		}
		at := r.Uint64N(total)
		for _, s := range code {
			if at < s.Size {
				if _, ok := o.Symbol(s.Addr + at); ok {
					addrs = append(addrs, s.Addr+at)
				}
				break
			}
			at -= s.Size
		}
	}
	return addrs
}

// A plainFrame holds the parts of a frame that are compared.
type plainFrame struct {
	FunctionName string
	FileName     string
	Line, Column uint32
}

func (f plainFrame) String() string {
	return fmt.Sprintf("%s %s:%d:%d", f.FunctionName, f.FileName, f.Line, f.Column)
}

// oracle returns llvm-symbolizer's frames for each address.
func oracle(t *testing.T, path string, addrs []uint64) [][]plainFrame {
	t.Helper()
	need(t, llvmSymbolizer)
	var in bytes.Buffer
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	cmd := exec.Command(llvmSymbolizer, "--obj="+path, "--no-demangle", "--output-style=JSON")
	cmd.Stdin = &in
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v", cmd, err)
	}
	all := make([][]plainFrame, 0, len(addrs))
	for dec := json.NewDecoder(bytes.NewReader(out)); ; {
		var answer struct{ Symbol []plainFrame }
		err := dec.Decode(&answer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, answer.Symbol)
	}
	if len(all) != len(addrs) {
		t.Fatalf("%s answered %d of %d addresses", cmd, len(all), len(addrs))
	}
	return all
}

// withSymbol returns frames as a symbolizer shows them: the outermost name is from the symbol
// table.
func withSymbol(o *object.File, frames []Frame, addr uint64) []plainFrame {
	var out []plainFrame
	for _, f := range frames {
		out = append(out, plainFrame{string(f.Name), f.File, f.Line, f.Column})
	}
	if len(out) == 0 {
		out = append(out, plainFrame{})
	}
	if s, ok := o.Symbol(addr); ok {
		out[len(out)-1].FunctionName = string(s.Name)
	}
	return out
}

// difference names the part of a frame that differs; "" if none does. A file without a line is
// ignored: it is from the symbol table's STT_FILE, not from the debug information.
func difference(got, want plainFrame) string {
	if got.FileName == "" && want.Line == 0 {
		want.FileName = ""
	}
	switch {
	case got == want:
		return ""
	case got.FunctionName != want.FunctionName:
		return "function"
	case got.FileName != want.FileName:
		return "file"
	case got.Line != want.Line:
		return "line"
	}
	return "column"
}

func TestAgreement(t *testing.T) {
	fuzztest.WithoutRace(t)
	var (
		mu            sync.Mutex
		frames, wrong int
	)
	home := 0
	for _, f := range fixtures {
		if !f.elsewhere && (long() || !f.long) {
			home++
		}
	}
	t.Run("fixtures", func(t *testing.T) {
		for _, f := range fixtures {
			if f.long && !long() {
				continue
			}
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				path := f.build(t)
				o := openObject(t, path)
				n := (agreeAddresses + home - 1) / home
				if !long() {
					n /= 5
				}
				if f.elsewhere {
					n = agreeElsewhere
				}
				addrs := codeAddresses(t, o, n)
				asked := path
				if f.like != "" {
					asked = filepath.Join(filepath.Dir(path), f.like)
				}
				want := oracle(t, asked, addrs)
				n, classes := compare(t, o, linksOf(t, path), addrs, want)
				bad := 0
				for class, count := range classes {
					t.Logf("differ in %s: %d", class, count)
					bad += count
				}
				t.Logf("%d of %d frames equal", n-bad, n)
				mu.Lock()
				defer mu.Unlock()
				frames += n
				wrong += bad
				if float64(bad) > float64(n)*(1-agreeRatio) {
					t.Errorf("%d of %d frames differ", bad, n)
				}
			})
		}
	})
	t.Logf("%d of %d frames equal", frames-wrong, frames)
}

// checkTiers checks that the answer for an address does not depend on what earlier lookups have
// parsed and sorted.
func checkTiers(t *testing.T, o *object.File, l testLinks, d *Data, addr uint64, frames []Frame) {
	t.Helper()
	again, _ := d.Lookup(nil, addr)
	if diff := cmp.Diff(again, frames, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("address %#x asked for again (-got +want):\n%s", addr, diff)
	}
	fresh := l.open(t, o)
	first, _ := fresh.Lookup(nil, addr)
	if diff := cmp.Diff(first, frames, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("address %#x asked for first (-got +want):\n%s", addr, diff)
	}
}

// compare looks up all addresses and compares the frames with want. It returns the number of
// compared frames, and the number of differing frames by the part that differs: see difference.
func compare(t *testing.T, o *object.File, l testLinks, addrs []uint64, want [][]plainFrame) (n int, classes map[string]int) {
	t.Helper()
	d := l.open(t, o)
	classes = make(map[string]int)
	var frames []Frame
	var first [][]Frame
	shown := 0
	for i, addr := range addrs {
		var err error
		frames, err = d.Lookup(frames[:0], addr)
		if err != nil {
			t.Fatalf("address %#x: %v", addr, err)
		}
		got := withSymbol(o, frames, addr)
		first = append(first, slices.Clone(frames))
		if i%20 == 0 {
			checkTiers(t, o, l, d, addr, frames)
		}
		n += max(len(got), len(want[i]))
		bad := 0
		for k := range min(len(got), len(want[i])) {
			if class := difference(got[k], want[i][k]); class != "" {
				classes[class]++
				bad++
			}
		}
		if len(got) != len(want[i]) {
			classes["depth"]++
			bad++
		}
		if bad > 0 && shown < 5 {
			shown++
			t.Logf("address %#x:\n got %v\nwant %v", addr, got, want[i])
		}
	}
	checkFootprint(t, d)
	all := d.Footprint()
	d.Shrink(all / 2)
	if left := d.Footprint(); left > all/2 {
		t.Errorf("%d bytes are held after Shrink(%d)", left, all/2)
	}
	checkFootprint(t, d)
	for i := 0; i < len(addrs); i += len(addrs) / 50 {
		checkTiers(t, o, l, d, addrs[i], first[i])
	}
	return n, classes
}
