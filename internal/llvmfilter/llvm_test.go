package llvmfilter

import (
	"bytes"
	"debug/elf"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/testenv"
)

var (
	inventory = filepath.Join("..", "..", "testdata", "debug")
	handmade  = filepath.Join("..", "..", "filter", "testdata", "debug")
)

func tree(dir string) string { return "--debug-file-directory=" + dir }

// compare filters a log with both filters, and fails the test if their outputs differ.
func compare(t *testing.T, in string, flags ...string) {
	t.Helper()
	wantOut, wantSaid := byLLVM(t, in, flags)
	gotOut, gotSaid := byUs(t, in, flags, nil)
	if gotOut != wantOut {
		t.Errorf("standard output with %s: %s", flags, firstDifference(gotOut, wantOut))
	}
	if gotSaid != wantSaid {
		t.Errorf("standard error with %s: %s", flags, firstDifference(gotSaid, wantSaid))
	}
}

func TestRealLogs(t *testing.T) {
	for _, name := range []string{"crash.log", "clang-crash.log"} {
		log, err := os.ReadFile(filepath.Join("..", "..", "testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, flags := range flagSets {
			compare(t, string(log), append([]string{tree(inventory)}, flags...)...)
		}
	}
}

// Reports of the address sanitizer have markup for everything that it would symbolize. Both filters
// must give the same output for them.
func TestAddressSanitizerReports(t *testing.T) {
	need(t, llvmSymbolizer, "clang-19")
	dir := t.TempDir()
	for _, source := range []string{"uaf", "segv"} {
		for _, level := range []string{"-O0", "-O1"} {
			program := filepath.Join(dir, source+level)
			build := exec.Command("clang-19", "-x", "c++", "-g", level, "-fsanitize=address", "-Wl,--build-id",
				filepath.Join("..", "..", "integration", "testdata", source+".cc"), "-lstdc++", "-o", program)
			if out, err := build.CombinedOutput(); err != nil {
				if os.Getenv("CI") == "true" {
					t.Fatalf("%s: %v\n%s", build, err, out)
				}
				t.Skipf("%s: %v\n%s", build, err, out)
			}
			b := readBinary(t, program)
			place := filepath.Join(dir, ".build-id", b.id[:2], b.id[2:]+".debug")
			if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(program, place); err != nil {
				t.Fatal(err)
			}
			crash := exec.Command(place)
			crash.Env = []string{"ASAN_OPTIONS=enable_symbolizer_markup=1"}
			log, err := crash.CombinedOutput()
			if err == nil || !bytes.Contains(log, []byte("{{{bt:0:")) {
				t.Fatalf("%s did not die with a backtrace: %v\n%s", place, err, log)
			}
			for _, flags := range flagSets {
				compare(t, string(log), append([]string{tree(dir)}, flags...)...)
			}
		}
	}
}

// An object file that was not linked, and has no build ID, must be resolved like a linked file. If
// it has several sections with code, which all begin at address 0, an address must be looked up in
// the first section that is long enough.
func TestObjectFiles(t *testing.T) {
	need(t, llvmSymbolizer, "clang-19", "gcc", "g++")
	dir := t.TempDir()
	place := filepath.Join(dir, ".build-id", "ab", "cdef.debug")
	if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
		t.Fatal(err)
	}
	var log strings.Builder
	log.WriteString("{{{module:0:a.o:elf:abcdef}}}\n{{{mmap:0x1000:0x1000:load:0:rwx:0}}}\n")
	for a := 0x1000; a < 0x1100; a++ {
		fmt.Fprintf(&log, "{{{bt:0:%#x:pc}}} {{{pc:%#x}}} {{{data:%#x}}}\n", a, a, a)
	}
	const c = "int n; static inline int sq(int x) { return x * x; }\n" +
		"__attribute__((noinline)) int f(int x) {\n n = x;\n return sq(x) + sq(n); }\n" +
		"int g(int x) {\n if (x > 3)\n  n += f(x);\n return sq(n) ? f(x + 1) :\n  f(x) * 7; }\n" +
		"int main(void) { return f(n) + g(n); }\n"
	const cpp = "template <class T> struct A { T v;\n inline T sq() const { return v * v; }\n T set(T x) { v = x;\n return sq(); } };\n" +
		"template struct A<int>; template struct A<long>;\n int use(int x) { A<int> a; return\n a.set(x); }\n"
	for _, build := range []string{
		"clang-19 -x c -O1", "clang-19 -x c -O0 -ffunction-sections", "clang-19 -x c -O1 -ffunction-sections -gdwarf-4 -gz=zlib",
		"gcc -x c -O2 -ffunction-sections", "clang-19 -x c++ -O1", "g++ -x c++ -O1", "clang-19 -x c -O1 -ffunction-sections --target=aarch64-linux-gnu",
		"clang-19 -x c -O1 -ffunction-sections --target=i386-linux-gnu", "clang-19 -x c -O1 -ffunction-sections --target=s390x-linux-gnu",
		"clang-19 -x c -O1 --target=mips-linux-gnu", "clang-19 -x c -O1 -gdwarf-4 --target=mips64el-linux-gnuabi64",
		"clang-19 -x c -O1 --target=mips64-linux-gnuabi64", "clang-19 -x c -O1 --target=powerpc-linux-gnu",
		"clang-19 -x c -O1 --target=powerpc64le-linux-gnu", "clang-19 -x c -O1 --target=loongarch64-linux-gnu",
		"clang-19 -x c -O1 -ffunction-sections --target=sparcv9-linux-gnu", "clang-19 -x c -O1 -ffunction-sections --target=bpf",
		"clang-19 -x c -O1 --target=riscv64-linux-gnu -gdwarf-4",
	} {
		words := strings.Fields(build)
		source := c
		if words[2] == "c++" {
			source = cpp
		}
		command(t, source, words[0], append(words[1:], "-", "-g", "-c", "-o", place)...)
		t.Run(build, func(t *testing.T) {
			if functions := functionsByOffset(t, place); functions != nil {
				out, _ := byUs(t, log.String(), []string{tree(dir), "--no-demangle"}, nil)
				wantFunctions(t, out, functions)
				return
			}
			for _, flags := range flagSets {
				compare(t, log.String(), append([]string{tree(dir)}, flags...)...)
			}
		})
	}
}

// functionsByOffset returns the function at each offset of an object file with several sections of
// code, from its symbols. An offset belongs to the first section that is long enough. The result is
// nil if only one section has code.
func functionsByOffset(t *testing.T, name string) map[uint64]string {
	t.Helper()
	f, err := elf.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	functions, sections := make(map[uint64]string), 0
	taken := uint64(0)
	for i, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR == 0 || s.Size == 0 {
			continue
		}
		sections++
		for _, sym := range symbols {
			if int(sym.Section) != i || elf.ST_TYPE(sym.Info) != elf.STT_FUNC {
				continue
			}
			for at := max(taken, sym.Value); at < sym.Value+sym.Size; at++ {
				functions[at] = sym.Name
			}
		}
		taken = max(taken, s.Size)
	}
	if sections < 2 {
		return nil
	}
	return functions
}

// wantFunctions fails the test if a frame in out has another name than functions has for its
// address. It ignores LLVM's output, which may have the line of one section and the function of
// another.
func wantFunctions(t *testing.T, out string, functions map[uint64]string) {
	t.Helper()
	named := 0
	for _, m := range regexp.MustCompile(`(?m)^ +#0 +0x([0-9a-f]+) (\S+) .* \(a\.o\+0x`).FindAllStringSubmatch(out, -1) {
		addr, err := strconv.ParseUint(m[1], 16, 64)
		if err != nil {
			t.Fatal(err)
		}
		if want := functions[addr-0x1000]; m[2] != want {
			t.Errorf("%#x is in %s, want %s", addr, m[2], want)
		}
		named++
	}
	if named == 0 {
		t.Errorf("no frame has a name:\n%s", out)
	}
}

// The names of a real library, in symbol elements, must be printed as by LLVM's filter. At most one
// in a hundred may differ.
func TestNamesOfARealLibrary(t *testing.T) {
	need(t, llvmSymbolizer)
	f, err := elf.Open(testenv.Find(t, "/usr/lib/*/libLLVM*19*"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	step := len(symbols)/2000 + 1
	if long() {
		step = 1
	}
	var log strings.Builder
	n := 0
	for i := 0; i < len(symbols); i += step {
		fmt.Fprintf(&log, "{{{symbol:%s}}}\n", symbols[i].Name)
		n++
	}
	wantOut, wantSaid := byLLVM(t, log.String(), nil)
	gotOut, gotSaid := byUs(t, log.String(), nil, nil)
	got, want, in := strings.Split(gotOut, "\n"), strings.Split(wantOut, "\n"), strings.Split(log.String(), "\n")
	if len(got) != len(want) || gotSaid != wantSaid {
		t.Fatalf("%d lines, want %d; %s", len(got), len(want), firstDifference(gotSaid, wantSaid))
	}
	differ := 0
	for i := range got {
		if got[i] != want[i] {
			if differ++; differ <= 2 {
				t.Logf("%s\n got %s\nwant %s", in[i], got[i], want[i])
			}
		}
	}
	t.Logf("%d of %d names differ", differ, n)
	if differ*100 > n {
		t.Errorf("%d of %d names differ", differ, n)
	}
}

// flagSets are the flags with which generated logs are filtered.
var flagSets = [][]string{
	{},
	{"--color"},
	{"--color=never", "--no-demangle"},
	{"--color=always", "--functions=none"},
	{"--functions=short", "--basenames"},
	{"--color=always", "--functions=linkage", "--relativenames"},
}

// names are the names in generated symbol elements.
var names = []string{
	"_ZN2ns5innerEi", "main", "i", "", "_Z1fv", "__Z1fv", "___Z1fv", "____Z1fv", "_RNvC6_123foo3bar", " _Z1fv", "_Z1fv.cold", ".\x00", "_Z",
	"_ZNSt6vectorIiSaIiEE9push_backEOi", "_ZZ1fvENKUlvE_clEv", "_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "_Z1f\x00v", "a b", "?",
}

// The output for generated logs must equal that of LLVM's filter. LLVM's filter starts slowly, so
// many logs are filtered in one run, with marks between them in both outputs.
func TestGeneratedLogs(t *testing.T) {
	need(t, llvmSymbolizer)
	batch, batches := 50, 20
	if long() {
		batch, batches = 100, 100
	}
	for i := range batches {
		flags := flagSets[i%len(flagSets)]
		t.Run(fmt.Sprint(i, flags), func(t *testing.T) {
			g := newGenerator(t, uint64(i))
			var logs []string
			var in strings.Builder
			for n := range batch {
				logs = append(logs, g.log())
				fmt.Fprintf(&in, "{{{reset}}}\n%s%d {{{Mark}}}\n%s", mark, n, logs[n])
			}
			all := append([]string{tree(inventory), tree(handmade)}, flags...)
			wantOut, wantSaid := byLLVM(t, in.String(), all)
			var r *rand.Rand
			if i%2 == 1 {
				r = g.Rand
			}
			gotOut, gotSaid := byUs(t, in.String(), all, r)
			if gotOut == wantOut && gotSaid == wantSaid {
				return
			}
			differ := 0
			outs, wantOuts, saids, wantSaids := split(gotOut), split(wantOut), split(gotSaid), split(wantSaid)
			for n := range logs {
				key := fmt.Sprint(n)
				if outs[key] == wantOuts[key] && saids[key] == wantSaids[key] {
					continue
				}
				if differ++; differ <= 3 {
					t.Errorf("log\n%s\nstandard output: %s\nstandard error: %s", escaped(logs[n]),
						firstDifference(outs[key], wantOuts[key]), firstDifference(saids[key], wantSaids[key]))
				}
			}
			t.Errorf("%d of %d logs differ", differ, len(logs))
		})
	}
}

const mark = "=== "

// split returns the parts of an output by the number in the mark before them.
func split(s string) map[string]string {
	parts := map[string]string{}
	for _, p := range strings.Split(s, mark) {
		n, _, _ := strings.Cut(p, " ")
		parts[n] += p
	}
	return parts
}

func newGenerator(t testing.TB, seed uint64) *generator {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 7)), symbols: names}
	for _, dir := range []string{inventory, handmade} {
		files, err := filepath.Glob(filepath.Join(dir, ".build-id", "*", "*.debug"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no files in %s: %v", dir, err)
		}
		for _, f := range files {
			g.binaries = append(g.binaries, readBinary(t, f))
		}
	}
	return g
}
