//go:build linux

package integration

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// splitSource has inlined calls that are described only in the split unit.
const splitSource = `
volatile int sink;
static inline __attribute__((always_inline)) int inner(int x) { sink = x; return x + sink; }
static inline __attribute__((always_inline)) int middle(int x) { return inner(x) * inner(x + 1); }
__attribute__((noinline)) int price(int x) { return middle(x) + middle(sink); }
extern "C" int entry(int x) { return price(x) + 1; }
`

// markupOf returns a log with presentation elements for every byte of a program's code. Its build
// ID is abcdef.
func markupOf(t *testing.T, path string) []byte {
	t.Helper()
	f, err := elf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	var b bytes.Buffer
	fmt.Fprintf(&b, "{{{reset}}}\n{{{module:0:shop.so:elf:abcdef}}}\n{{{mmap:0x10000000:0x100000:load:0:rx:0x0}}}\n")
	for a := text.Addr; a < text.Addr+text.Size; a++ {
		fmt.Fprintf(&b, "{{{bt:0:%#x:pc}}}\n{{{pc:%#x:pc}}}\n", 0x10000000+a, 0x10000000+a)
	}
	return b.Bytes()
}

// In the llvm style, split units must be read from .dwo files, and from packages next to the
// program or named by --dwp. Debug files must be found by link. The answers must equal
// llvm-symbolizer's.
func TestSplitUnitsInTheStyleOfLLVM(t *testing.T) {
	need(t, "clang++-19", "g++", "llvm-symbolizer-19", "llvm-dwp-19", "objcopy", "dwz")
	// build puts the program into a tree of build IDs, where both tools look for it. lib is its
	// path.
	build := func(t *testing.T, compiler string, flags ...string) (dir, lib string, log []byte) {
		dir = t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "shop.cc"), []byte(splitSource), 0o666); err != nil {
			t.Fatal(err)
		}
		src, obj, built := filepath.Join(dir, "shop.cc"), filepath.Join(dir, "shop.o"), filepath.Join(dir, "shop.so")
		run(t, nil, compiler, append(flags, "-O2", "-g", "-fPIC", "-c", src, "-o", obj)...)
		run(t, nil, compiler, "-shared", "-Wl,--build-id=0xabcdef", "-o", built, obj)
		lib = filepath.Join(dir, ".build-id/ab/cdef.debug")
		if err := os.MkdirAll(filepath.Dir(lib), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(built, lib); err != nil {
			t.Fatal(err)
		}
		return dir, lib, markupOf(t, lib)
	}
	same := func(t *testing.T, log []byte, dir, wants string, flags ...string) {
		t.Helper()
		flags = append(flags, "--filter-markup", "--debug-file-directory="+dir)
		want := run(t, log, "llvm-symbolizer-19", flags...)
		if !strings.Contains(want, wants) {
			t.Fatalf("llvm-symbolizer does not say %q:\n%.2000s", wants, want)
		}
		if diff := cmp.Diff(run(t, log, command, flags...), want); diff != "" {
			t.Errorf("%v (-got +want):\n%.3000s", flags, diff)
		}
	}
	split := []string{"-gsplit-dwarf", "-fno-split-dwarf-inlining"}
	for _, version := range []string{"-gdwarf-4", "-gdwarf-5"} {
		t.Run("clang "+version, func(t *testing.T) {
			dir, lib, log := build(t, "clang++-19", append(split, version)...)
			dwo := filepath.Join(dir, "shop.dwo")
			same(t, log, dir, "inner")
			package1, package2 := lib+".dwp", filepath.Join(dir, "other")
			run(t, nil, "llvm-dwp-19", "-e", lib, "-o", package2)
			if err := os.Remove(dwo); err != nil {
				t.Fatal(err)
			}
			same(t, log, dir, "price(int)")
			same(t, log, dir, "inner", "--dwp="+package2)
			if err := os.Rename(package2, package1); err != nil {
				t.Fatal(err)
			}
			same(t, log, dir, "inner")
		})
		t.Run("gcc "+version, func(t *testing.T) {
			dir, _, log := build(t, "g++", "-gsplit-dwarf", version)
			same(t, log, dir, "inner")
		})
	}
	t.Run("debug link", func(t *testing.T) {
		dir, lib, log := build(t, "g++")
		debug := filepath.Join(filepath.Dir(lib), "shop.debug")
		run(t, nil, "objcopy", "--only-keep-debug", lib, debug)
		run(t, nil, "objcopy", "--strip-all", "--add-gnu-debuglink="+debug, lib)
		same(t, log, dir, "inner")
		root := t.TempDir()
		far := filepath.Join(root, filepath.Dir(lib))
		if err := os.MkdirAll(far, 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(debug, filepath.Join(far, "shop.debug")); err != nil {
			t.Fatal(err)
		}
		same(t, log, dir, "entry")
		same(t, log, dir, "inner", "--fallback-debug-path="+root)
	})
	t.Run("supplementary file", func(t *testing.T) {
		dir, lib, log := build(t, "g++")
		other := filepath.Join(dir, "other.so")
		run(t, nil, "cp", lib, other)
		run(t, nil, "dwz", "-m", filepath.Join(filepath.Dir(lib), "shop.alt"), "-h", lib, other)
		same(t, log, dir, "price(int)")
		// in the default style, functions that only the supplementary file names must have names
		if out := run(t, log, command, "--obj="+lib); !strings.Contains(out, "inner") {
			t.Errorf("inner is missing:\n%.2000s", out)
		}
	})
}
