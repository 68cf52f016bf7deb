package llvmfilter

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
	"github.com/symfilter/symfilter/symbolize"
)

// The outputs for inputs on which LLVM 19 differs, as docs/formats/llvm.md lists them. LLVM's
// outputs are not recorded: they are a crash, uninitialised memory, or names of another demangler.
func TestKnownDifferences(t *testing.T) {
	long := strings.Repeat("ab", 65)
	for _, test := range []struct{ name, in, out, said string }{
		{
			"a map of the last ID, which no module has",
			"{{{mmap:0x1000:0x10:load:18446744073709551615:r:0}}}\n",
			"",
			"error: unknown module ID\n{{{mmap:0x1000:0x10:load:18446744073709551615:r:0}}}\n                         ^\n",
		},
		{
			"a build ID of more than 64 bytes",
			"{{{module:0:m:elf:" + long + "}}}\n{{{mmap:0x1000:0x10:load:0:r:0}}}\n{{{pc:0x1001:pc}}}\n",
			"[[[ELF module #0x0 \"m\"; BuildID=" + long + " [0x1000-0x100f](r)]]]\n[[[pc:0x1001:pc]]]\n",
			"error: could not find build ID\n",
		},
		{"a name of D", "{{{symbol:_D3foo3barFZv}}}\n", "_D3foo3barFZv\n", ""},
		{"a name of Microsoft's C++", "{{{symbol:?f@@YAXXZ}}}\n", "?f@@YAXXZ\n", ""},
	} {
		out, said := byUs(t, test.in, nil, nil)
		if out != test.out || said != test.said {
			t.Errorf("%s: got\n%s%swant\n%s%s", test.name, out, said, test.out, test.said)
		}
	}
}

func TestDamagedFilesAreToldInOneSentence(t *testing.T) {
	dir := t.TempDir()
	place := filepath.Join(dir, ".build-id", "aa", "bb.debug")
	if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
		t.Fatal(err)
	}
	for _, damaged := range []string{
		"\x7fELF", "\x7fELF\x09\x09", "\x7fELF" + strings.Repeat("\xff", 500), "no ELF at all",
		"!<arch>\n", "\xcf\xfa\xed\xfe\x07\x00\x00\x01", "\x00asm\x01\x00\x00\x00", // an archive, Mach-O, WebAssembly
	} {
		if err := os.WriteFile(place, []byte(damaged), 0o666); err != nil {
			t.Fatal(err)
		}
		sym := symbolize.New(symbolize.Options{Finders: []symbolize.Finder{buildid.NewTree(dir)}, Reaching: true})
		out, said := through(sym, "{{{module:0:m:elf:aabb}}}\n{{{mmap:0x1000:0x10:load:0:r:0}}}\n{{{pc:0x1001:pc}}}\n")
		sym.Close()
		const want = "error: The file was not recognized as a valid object file\n"
		if said != want || !strings.HasSuffix(out, "[[[pc:0x1001:pc]]]\n") {
			t.Errorf("%q: got %q and %q, want %q", damaged, out, said, want)
		}
	}
}

// LLVM 19 misreads these files, or prints a warning about them. The filter must give the right
// answer without a message.
func TestKnownDifferencesInFiles(t *testing.T) {
	need(t, llvmSymbolizer, "clang-19", "ld.lld-19")
	const code = "struct S { int a; } s; int n;\n__attribute__((noinline)) int f(int x) { return x * n; }\nint g(int x) { return f(x) + n; }\nint dead(int x) { return g(x) * 7; }\n" +
		"int _start(void) { return g(n + s.a); }\n"
	for _, test := range []struct {
		name, build, log string
		ours, llvm       string
		said             string
	}{
		{
			"code that the linker threw away", "-nostdlib -ffunction-sections -fuse-ld=lld -Wl,--gc-sections -Wl,--build-id=0xabcdef -fPIE -pie", "{{{pc:0x1001}}}\n",
			"[[[pc:0x1001]]]\n", "g[<stdin>:3]\n", "",
		},
		{
			"descriptors of functions", "-c --target=powerpc64-linux-gnu", "{{{pc:0x1000}}}\n",
			"f[<stdin>:2]\n", "_start[<stdin>:2]\n", "",
		},
		{
			"units of types of DWARF 5 in a file that was not linked", "-c -x c++ -fdebug-types-section", "{{{pc:0x1000}}}\n",
			"f(int)[<stdin>:2]\n", "f(int)[<invalid>:0]\n", "",
		},
		{
			"differences of addresses on RISC-V in a file that was not linked", "-c --target=riscv64-linux-gnu", "{{{pc:0x1000}}}\n",
			"f[<stdin>:2]\n", "f[<stdin>:2]\n", "warning: failed to compute relocation: R_RISCV_SET_ULEB128",
		},
	} {
		dir := t.TempDir()
		place := filepath.Join(dir, ".build-id", "ab", "cdef.debug")
		if err := os.MkdirAll(filepath.Dir(place), 0o777); err != nil {
			t.Fatal(err)
		}
		command(t, code, "clang-19", append(strings.Fields("-x c "+test.build), "-O1", "-g", "-", "-o", place)...)
		const before = "{{{module:0:m:elf:abcdef}}}\n{{{mmap:0x1000:0x1000:load:0:rx:0}}}\n"
		flags := []string{tree(dir), "--basenames"}
		out, said := byUs(t, before+test.log, flags, nil)
		if _, out, _ = strings.Cut(out, "]]]\n"); out != test.ours || said != "" {
			t.Errorf("%s: got %q and %q, want %q", test.name, out, said, test.ours)
		}
		out, said = byLLVM(t, before+test.log, flags)
		if _, out, _ = strings.Cut(out, "]]]\n"); out != test.llvm || !strings.HasPrefix(said, test.said) {
			t.Errorf("%s: LLVM says %q and %q, want %q and %q", test.name, out, said, test.llvm, test.said)
		}
	}
}

// through filters a log, and returns both outputs.
func through(sym *symbolize.Symbolizer, log string) (out, said string) {
	var o, s strings.Builder
	f := New(&o, &s, Options{Symbolizer: sym})
	f.Write([]byte(log))
	f.Close()
	return o.String(), s.String()
}
