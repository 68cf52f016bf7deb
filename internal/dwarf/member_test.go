package dwarf

import (
	"bufio"
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// memberBuilds are the builds of the programs in testdata/members.
var memberBuilds = []struct{ name, source, command, after string }{
	{"gcc dwarf5", "plain.c", "gcc -gdwarf-5 -O1", ""},
	{"gcc dwarf4 type units", "plain.c", "gcc -gdwarf-4 -fdebug-types-section -O1", ""},
	{"gcc dwarf5 type units", "plain.c", "gcc -gdwarf-5 -fdebug-types-section -O1", ""},
	{"gcc dwarf2", "plain.c", "gcc -gdwarf-2 -gstrict-dwarf -O1", ""},
	{"clang dwarf5", "plain.c", "clang-19 -gdwarf-5 -O1", ""},
	{"clang dwarf3", "plain.c", "clang-19 -gdwarf-3 -O1", ""},
	{"clang dwarf4 32-bit", "plain.c", "clang-19 --target=i386-linux-gnu -ffreestanding -nostdlib -static -fuse-ld=lld -Wl,-e,main -gdwarf-4 -O1", ""},
	{"clang dwarf5 32-bit", "plain.c", "clang-19 --target=i386-linux-gnu -ffreestanding -nostdlib -static -fuse-ld=lld -Wl,-e,main -gdwarf-5 -O1", ""},
	{"clang dwarf5 big-endian", "plain.c", "clang-19 --target=powerpc64-linux-gnu -mabi=elfv2 -ffreestanding -nostdlib -static -fuse-ld=lld -Wl,-e,main -gdwarf-5 -O1", ""},
	{"clang dwarf3 big-endian", "plain.c", "clang-19 --target=powerpc64-linux-gnu -mabi=elfv2 -ffreestanding -nostdlib -static -fuse-ld=lld -Wl,-e,main -gdwarf-3 -O1", ""},
	{"gcc dwarf5 split", "plain.c", "gcc -gdwarf-5 -gsplit-dwarf -O1", ""},
	{"gcc dwarf4 split", "plain.c", "gcc -gdwarf-4 -gsplit-dwarf -O1", ""},
	{"gcc dwarf4 split type units", "plain.c", "gcc -gdwarf-4 -gsplit-dwarf -fdebug-types-section -O1", ""},
	{"gcc dwarf5 split type units", "plain.c", "gcc -gdwarf-5 -gsplit-dwarf -fdebug-types-section -O1", ""},
	{"clang dwarf5 split package", "plain.c", "clang-19 -gdwarf-5 -gsplit-dwarf -O1", "llvm-dwp-19 -e prog -o prog.dwp; rm prog-plain.dwo"},
	{"clang dwarf5 split package type units", "plain.c", "clang-19 -gdwarf-5 -gsplit-dwarf -fdebug-types-section -O1", "llvm-dwp-19 -e prog -o prog.dwp; rm prog-plain.dwo"},
	{"clang dwarf4 split package type units", "plain.c", "clang-19 -gdwarf-4 -gsplit-dwarf -fdebug-types-section -O1", "llvm-dwp-19 -e prog -o prog.dwp; rm prog-plain.dwo"},
	{"gcc dwarf4 split package type units", "plain.c", "gcc -gdwarf-4 -gsplit-dwarf -fdebug-types-section -O1", "dwp -e prog -o prog.dwp; rm prog-plain.dwo"},
	{"gcc dwarf5 dwz", "plain.c", "gcc -gdwarf-5 -O1", "cp prog other; dwz -m prog.alt -h prog other"},
	{"gcc dwarf4 dwz", "plain.c", "gcc -gdwarf-4 -O1", "cp prog other; dwz -m prog.alt -h prog other"},
	{"g++ dwarf5", "classes.cc", "g++ -std=c++20 -gdwarf-5 -O1", ""},
	{"g++ dwarf4 type units", "classes.cc", "g++ -std=c++20 -gdwarf-4 -fdebug-types-section -O1", ""},
	{"g++ dwarf5 dwz", "classes.cc", "g++ -std=c++20 -gdwarf-5 -O1", "dwz prog"},
	{"clang++ dwarf5 split type units", "classes.cc", "clang++-19 -std=c++20 -gdwarf-5 -gsplit-dwarf -fdebug-types-section -O1", ""},
	{"clang++ dwarf5", "classes.cc", "clang++-19 -std=c++20 -gdwarf-5 -O1", ""},
	{"clang++ dwarf4 type units", "classes.cc", "clang++-19 -std=c++20 -gdwarf-4 -fdebug-types-section -O1", ""},
}

// buildMembers compiles a program of testdata/members.
func buildMembers(t *testing.T, source, command, after string) string {
	t.Helper()
	dir := t.TempDir()
	inDir(t, dir, command+" -w -o prog TESTDATA/members/"+source)
	for command := range strings.SplitSeq(after, ";") {
		if strings.TrimSpace(command) != "" {
			inDir(t, dir, command)
		}
	}
	return filepath.Join(dir, "prog")
}

// A gdbPart is a part of a variable according to gdb.
type gdbPart struct {
	off, size uint64
	path      string
	leaf      bool
}

func (p gdbPart) covers(off uint64) bool { return p.off <= off && off-p.off < p.size }

func (p gdbPart) at(off uint64) string {
	if off == p.off {
		return p.path
	}
	return fmt.Sprintf("%s+%#x", p.path, off-p.off)
}

// gdbParts returns gdb's parts of each variable, by address.
func gdbParts(t *testing.T, prog string) map[uint64][]gdbPart {
	t.Helper()
	need(t, "gdb")
	cmd := exec.Command("gdb", "-q", "-nx", "-batch", "-ex", "set debuginfod enabled off", "-x", "testdata/members/leaves.py", prog)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil || bytes.Contains(stderr.Bytes(), []byte("Error")) {
		t.Fatalf("gdb: %v\n%s", err, stderr.Bytes())
	}
	all := make(map[uint64][]gdbPart)
	var addr uint64
	for s := bufio.NewScanner(bytes.NewReader(out)); s.Scan(); {
		f := strings.SplitN(s.Text(), " ", 4)
		switch f[0] {
		case "symbol":
			if addr, err = strconv.ParseUint(f[1], 0, 64); err != nil {
				t.Fatal(err)
			}
			if _, ok := all[addr]; !ok {
				all[addr] = []gdbPart{}
			}
		case "leaf", "node":
			off, _ := strconv.ParseUint(f[1], 10, 64)
			size, _ := strconv.ParseUint(f[2], 10, 64)
			all[addr] = append(all[addr], gdbPart{off, size, f[3], f[0] == "leaf"})
		}
	}
	return all
}

// wanted returns the correct answers for a byte of a variable: the scalars at the byte or, in
// padding, the smallest named part.
func wanted(parts []gdbPart, off uint64) []string {
	var leaves, nodes []string
	least := ^uint64(0)
	for _, p := range parts {
		if p.covers(off) && p.leaf {
			leaves = append(leaves, p.at(off))
		}
		if p.covers(off) {
			least = min(least, p.size)
		}
	}
	for _, p := range parts {
		if p.covers(off) && p.size == least {
			nodes = append(nodes, p.at(off))
		}
	}
	switch {
	case off == 0:
		return []string{""}
	case len(leaves) > 0:
		return leaves
	case len(nodes) > 0:
		return nodes
	}
	return []string{""}
}

// objects returns the symbols of variables.
func objects(t *testing.T, path string) []elf.Symbol {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	all, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all, func(s elf.Symbol) bool {
		return elf.ST_TYPE(s.Info) != elf.STT_OBJECT || s.Size == 0
	})
}

// At every byte of every variable, Variable must return a member that gdb also has at that byte.
func TestMembersAgreeWithGDB(t *testing.T) {
	fuzztest.WithoutRace(t)
	for _, b := range memberBuilds {
		if strings.HasPrefix(b.after, "llvm-dwp") || b.name == "gcc dwarf5 split type units" || strings.HasSuffix(b.name, "big-endian") { // gdb 13 crashes, or complains
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			prog := buildMembers(t, b.source, b.command, b.after)
			known := gdbParts(t, prog)
			d := linksOf(t, prog).open(t, openObject(t, prog))
			bytes, members, variables := 0, 0, 0
			for _, s := range objects(t, prog) {
				parts, ok := known[s.Value]
				if !ok || s.Name == "flexible" { // for gdb, its flexible array has no elements
					continue
				}
				variables++
				sym := Extent{[]byte(s.Name), s.Value, s.Size}
				for off := range s.Size {
					v, ok, err := d.Variable(s.Value+off, sym)
					if err != nil {
						t.Fatal(err)
					}
					if want := wanted(parts, off); !ok || !slices.Contains(want, v.Member) {
						t.Errorf("%s+%#x: got %q, %v; want one of %q", s.Name, off, v.Member, ok, want)
					}
					bytes++
					if v.Member != "" {
						members++
					}
				}
			}
			t.Logf("%d variables of %d bytes, of which %d are in members", variables, bytes, members)
			if variables < 12 || members < 400 {
				t.Errorf("%d variables and %d members say little", variables, members)
			}
			checkFootprint(t, d)
		})
	}
}

// membersOf returns the member at each byte of a variable, one line for each. It skips a byte whose
// member differs from that of the preceding byte only in the distance.
func membersOf(t *testing.T, d *Data, s elf.Symbol) string {
	t.Helper()
	var b strings.Builder
	last := ""
	for off := range s.Size {
		v, ok, err := d.Variable(s.Value+off, Extent{[]byte(s.Name), s.Value, s.Size})
		if err != nil || !ok {
			t.Errorf("%s+%#x: %v, %v", s.Name, off, ok, err)
		}
		path, _, _ := strings.Cut(v.Member, "+0x")
		if off == 0 || path != last {
			fmt.Fprintf(&b, "%s+%#x %s\n", s.Name, off, v.Member)
		}
		last = path
	}
	return b.String()
}

// All builds of plain.c, except 32-bit builds, must have the members in the golden file.
func TestMembersOfC(t *testing.T) {
	const golden = "testdata/members/plain.want"
	for _, b := range memberBuilds {
		if b.source != "plain.c" || strings.Contains(b.name, "32-bit") {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			prog := buildMembers(t, b.source, b.command, b.after)
			d := linksOf(t, prog).open(t, openObject(t, prog))
			syms := objects(t, prog)
			slices.SortFunc(syms, func(a, b elf.Symbol) int { return strings.Compare(a.Name, b.Name) })
			var got strings.Builder
			for _, s := range syms {
				switch s.Name {
				case "table", "flexible", "zero_length", "numbers", "tight", "bits", "outer", "rows", "vector", "complex_value", "pair", "cube":
					got.WriteString(membersOf(t, d, s))
				}
			}
			if *update {
				if err := os.WriteFile(golden, []byte(got.String()), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(got.String(), string(want)); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
		})
	}
}

// The members in a Rust program must be found. The test is skipped without a Rust compiler.
func TestMembersOfRust(t *testing.T) {
	// rustc may be installed but not work: rustup's rustc without a toolchain
	if out, err := exec.Command("rustc", "--version").CombinedOutput(); err != nil {
		t.Skipf("rustc --version: %v\n%s", err, out)
	}
	dir := t.TempDir()
	inDir(t, dir, "rustc -A warnings -g -O -o prog TESTDATA/members/shapes.rs")
	prog := filepath.Join(dir, "prog")
	d := linksOf(t, prog).open(t, openObject(t, prog))
	// Rust chooses the order of fields, so the test compares only the set of members.
	want := map[string][]string{
		"TABLE": {"", "[0].name[1]", "[0].name[5]", "[0].kind", "[0].refs", "[3].name[0]", "[3].refs"},
		"TUPLE": {".0", ".1", ".2.0", ".2.1"},
		"MAYBE": {".Some.0.0", ".Some.0.1"},
		"COUNT": {"", "[1].v.value", "[2].v.value"},
		"SLICE": {".data_ptr", ".length"},
		"SHAPE": {"", ".Circle.1"}, // no byte is in two variants here
	}
	for _, s := range objects(t, prog) {
		found := make(map[string]bool)
		for off := range s.Size {
			v, _, err := d.Variable(s.Value+off, Extent{[]byte(s.Name), s.Value, s.Size})
			if err != nil {
				t.Fatal(err)
			}
			path, _, _ := strings.Cut(v.Member, "+0x")
			found[path] = true
		}
		for _, path := range want[s.Name] {
			if !found[path] {
				t.Errorf("%s: no byte is in %q; found are %v", s.Name, path, found)
			}
		}
		delete(want, s.Name)
	}
	for name := range want {
		t.Errorf("there is no %s", name)
	}
}

// goProgram has variables of all kinds of Go types.
const goProgram = `package main

type entry struct {
	name string
	at   struct{ x, y int16 }
	list []int
	any  any
	refs int32
}

var table [4]entry
var pointer *entry = &table[2]

func main() { table[1].refs++; println(pointer.refs, len(table[2].name)) }
`

func TestMembersOfGo(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "prog.go"), []byte(goProgram), 0o666); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("go", "build", "-o", "prog", "prog.go")
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	prog := filepath.Join(dir, "prog")
	d := linksOf(t, prog).open(t, openObject(t, prog))
	const size = 16 + 8 + 24 + 16 + 8
	want := map[string]string{
		"main.table+0x8":                           "[0].name.len",
		fmt.Sprintf("main.table+%#x", size+18):     "[1].at.y",
		fmt.Sprintf("main.table+%#x", 2*size+20):   "[2]+0x14",
		fmt.Sprintf("main.table+%#x", 3*size+40):   "[3].list.cap",
		fmt.Sprintf("main.table+%#x", 3*size+56+1): "[3].any.data+0x1",
		fmt.Sprintf("main.table+%#x", 3*size+64):   "[3].refs",
		"main.pointer+0x4":                         "",
	}
	got := make(map[string]string)
	for _, s := range objects(t, prog) {
		for off := range s.Size {
			place := fmt.Sprintf("%s+%#x", s.Name, off)
			if _, ok := want[place]; ok {
				v, _, err := d.Variable(s.Value+off, Extent{[]byte(s.Name), s.Value, s.Size})
				if err != nil {
					t.Fatal(err)
				}
				got[place] = v.Member
			}
		}
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("-got +want:\n%s", diff)
	}
}

// Paths must have the form of Fortran if the unit's language is Fortran. The test needs no
// compiler.
func TestMembersOfFortran(t *testing.T) {
	order := binary.LittleEndian
	abbrev := parts(order, 20, tagCompileUnit, 1, attrLanguage, formData1, 0, 0, typeAbbrevs)
	x := &typeText{parts(order, 20, 0x08)}
	i := x.add(abbrInt, 4)
	s := x.add(abbrStruct, "cell", uint64(8), abbrMember, "low", i, uint64(0), abbrMember, "high", i, uint64(4), 0)
	x.variable(x.add(abbrArray, s, abbrRange, uint64(3), abbrRange, uint64(2), 0)) // cell v(3,2)
	var sec sections
	sec.data[secAbbrev], sec.data[secInfo] = abbrev, unit4(append(x.body, 0))
	d := dataOf(sec)
	d.variables().ranges = []dataRange{{0x2000, 0x3000}}
	for off, want := range map[uint64]string{4: "(1,1)%high", 8: "(2,1)%low", 8*3 + 4: "(1,2)%high", 8*5 + 7: "(3,2)%high+0x3"} {
		v, _, err := d.Variable(0x2000+off, Extent{[]byte("v"), 0x2000, 48})
		if v.Member != want || err != nil {
			t.Errorf("%d: got %q, %v, want %q", off, v.Member, err, want)
		}
	}
}

// declared holds the files of a C++ program. Clang describes the variables and the types of these
// variables in different units.
var declared = map[string]string{
	"a.h": `namespace shop {
struct Homed { Homed(); int a; struct Inner { Inner(); short x, y; } inner[2]; int refs; };
struct Keyed { virtual void key(); long value; };
extern Homed homed[3];
extern Keyed keyed;
}
namespace { struct Hidden { Hidden(); int here[3]; } hidden; Hidden::Hidden() : here{1} {} }
`,
	"a.cc": `#include "a.h"
namespace shop { Homed homed[3]; Keyed keyed; }
int main() { return shop::homed[1].a + hidden.here[1]; }
`,
	"b.cc": `#include "a.h"
namespace other { struct Homed { int q, r, s, t; } homed; struct Inner { long z; } inner; }
struct Homed { int g, h; } homed;
`,
	"c.cc": `#include "a.h"
namespace shop { Homed::Homed() {} Homed::Inner::Inner() {} void Keyed::key() {} }
`,
}

func TestMembersOfDeclaredTypes(t *testing.T) {
	want := map[string]string{
		"_ZN4shop5homedE+0x10":          "[1].a",
		"_ZN4shop5homedE+0x1a":          "[1].inner[1].y",
		"_ZN4shop5homedE+0x2d":          "[2].refs+0x1",
		"_ZN4shop5keyedE+0x8":           ".value",
		"_ZN5other5homedE+0x8":          ".s",
		"homed+0x4":                     ".h",
		"_ZN12_GLOBAL__N_16hiddenE+0x4": ".here[1]",
	}
	for _, flags := range []string{"-gdwarf-5", "-gdwarf-4", "-gdwarf-5 -fdebug-types-section", "-gdwarf-5 -gdwarf64"} {
		t.Run(flags, func(t *testing.T) {
			dir := t.TempDir()
			for name, text := range declared {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			inDir(t, dir, "clang++-19 "+flags+" -O1 a.cc b.cc c.cc -o prog")
			prog := filepath.Join(dir, "prog")
			d := linksOf(t, prog).open(t, openObject(t, prog))
			got := make(map[string]string)
			for _, s := range objects(t, prog) {
				for off := range s.Size {
					place := fmt.Sprintf("%s+%#x", s.Name, off)
					if _, ok := want[place]; ok {
						v, _, err := d.Variable(s.Value+off, Extent{[]byte(s.Name), s.Value, s.Size})
						if err != nil {
							t.Fatal(err)
						}
						got[place] = v.Member
					}
				}
			}
			if diff := cmp.Diff(got, want); diff != "" {
				t.Errorf("-got +want:\n%s", diff)
			}
			checkFootprint(t, d)
			d.Shrink(0)
			if n := d.Footprint(); n != 0 {
				t.Errorf("%d bytes are held after Shrink(0)", n)
			}
		})
	}
}
