package symbolize

import (
	"cmp"
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/buildid"
)

// detailed is the source of a program with discriminators, inlined calls, and declarations apart
// from definitions.
const detailed = `
int count[3];
struct S { int v; int get(int) const; };
static inline __attribute__((always_inline)) int inner(int x) { for (int i = 0; i < x; i++) count[i % 3] += x ? i : -i; return count[x % 3]; }
int S::get(int x) const { return v * inner(x) + (x > 3 ? inner(x + 1) : inner(v)); }
int use(int x) { S s{x}; return s.get(x) + inner(x); }
`

// Details equal the output of llvm-symbolizer --verbose at each address.
func TestDetailsAreThoseOfLLVM(t *testing.T) {
	tool(t, "llvm-symbolizer-19")
	for _, compiler := range []string{"g++ -gdwarf-4", "g++ -gdwarf-5 -fno-inline-small-functions", "clang++-19 -gdwarf-5 -fdebug-info-for-profiling", "clang++-19 -gdwarf-4 -ffunction-sections -fdebug-info-for-profiling"} {
		t.Run(compiler, func(t *testing.T) {
			f := compiled(t, compiler)
			addrs := f.textAddresses(t)
			var in strings.Builder
			for _, a := range addrs {
				fmt.Fprintf(&in, "%#x\n", a)
			}
			cmd := exec.Command("llvm-symbolizer-19", "--obj="+f.path, "--verbose")
			cmd.Stdin = strings.NewReader(in.String())
			out, err := cmd.Output()
			if err != nil {
				t.Fatal(err)
			}
			answers := strings.Split(strings.TrimSuffix(string(out), "\n\n"), "\n\n")
			if len(answers) != len(addrs) {
				t.Fatalf("%d answers to %d addresses", len(answers), len(addrs))
			}
			s := open(t, Options{Reaching: true, Details: true}, oneFile{f, "here"})
			discriminators, outer := 0, 0
			for i, a := range addrs {
				frames, err := s.Ask(context.Background(), nil, f.at(a), Policy{})
				if err != nil {
					t.Fatal(err)
				}
				// LLVM omits the name of the start file if the file's number is stored in an
				// abbreviation
				got, want := verbose(frames), answers[i]
				if strings.Contains(want, "  Function start filename: \n") {
					got, want = withoutStartFile(got), withoutStartFile(want)
				}
				if got != want {
					t.Fatalf("%#x\n got\n%s\nwant\n%s", a, got, want)
				}
				for j := range frames {
					if frames[j].Details.Discriminator > 0 {
						discriminators++
						outer += min(1, j)
					}
				}
			}
			if discriminators == 0 || outer == 0 && strings.Contains(compiler, "profiling") {
				t.Errorf("%d frames have a discriminator, %d of them of calls", discriminators, outer)
			}
		})
	}
}

func withoutStartFile(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "  Function start filename: ") {
			b.WriteString(line)
		}
	}
	return b.String()
}

// compiled builds the program detailed as a library.
func compiled(t *testing.T, compiler string) fixture {
	t.Helper()
	words := strings.Fields(compiler)
	tool(t, words[0])
	dir := t.TempDir()
	src := filepath.Join(dir, "detailed.cc")
	if err := os.WriteFile(src, []byte(detailed), 0o666); err != nil {
		t.Fatal(err)
	}
	f := fixture{path: filepath.Join(dir, "detailed.so")}
	f.id, _ = buildid.FromBytes([]byte{0xde, 0x7a})
	run(t, words[0], append(words[1:], "-O2", "-shared", "-fPIC", "-Wl,--build-id=0xde7a", "-o", f.path, src)...)
	return f
}

// verbose formats frames like llvm-symbolizer --verbose.
func verbose(frames []Frame) string {
	var b strings.Builder
	if len(frames) == 0 {
		frames = []Frame{{Details: &Details{}}}
	}
	for i := range frames {
		f, d := &frames[i], frames[i].Details
		fmt.Fprintf(&b, "%s\n  Filename: %s\n", cmp.Or(f.Func, "??"), cmp.Or(f.File, f.SymbolFile, "??"))
		if d.Declared.Line != 0 {
			fmt.Fprintf(&b, "  Function start filename: %s\n  Function start line: %d\n", d.Declared.File, d.Declared.Line)
		}
		if d.HasStart {
			fmt.Fprintf(&b, "  Function start address: 0x%x\n", d.Start)
		}
		fmt.Fprintf(&b, "  Line: %d\n  Column: %d\n", f.Line, f.Column)
		if d.Discriminator != 0 {
			fmt.Fprintf(&b, "  Discriminator: %d\n", d.Discriminator)
		}
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// With Reaching, Named must find a symbol by its name, but not by an alias. It must return no error
// for a name without a symbol.
func TestNamedFindsSymbols(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{Reaching: true}, oneFile{f, "here"})
	tried := 0
	for name, sym := range f.symbols(t) {
		if elf.ST_TYPE(sym.Info) != elf.STT_FUNC || sym.Size == 0 {
			continue
		}
		tried++
		found, err := s.Named(context.Background(), f.at(0), name)
		if err != nil || len(found) != 1 || found[0] != (Extent{Addr: sym.Value, Size: sym.Size}) {
			t.Errorf("%s: got %v, %v, want %#x", name, found, err, sym.Value)
		}
	}
	if tried < 4 {
		t.Errorf("only %d symbols", tried)
	}
	if found, err := s.Named(context.Background(), f.at(0), "nobody"); err != nil || len(found) > 0 {
		t.Errorf("got %v, %v", found, err)
	}
}

// With DebugNames, a symbol must not name a function. Details must have the number of the
// function's entry. Details and declarations must have the compilation directory.
func TestDetailsSayWhereAnAnswerIsFrom(t *testing.T) {
	tool(t, "g++")
	dir := t.TempDir()
	src := filepath.Join(dir, "unit.cc")
	text := "extern \"C\" int plain(int x) { return x * 3; }\nnamespace shop { int total(int x) { return plain(x) + 1; } }\nint (*lambda)(int) = [](int x) { return x - 7; };\n"
	if err := os.WriteFile(src, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	f := fixture{path: filepath.Join(dir, "unit.so")}
	f.id, _ = buildid.FromBytes([]byte{0xde, 0x7b})
	cmd := exec.Command("g++", "-g", "-gdwarf-5", "-O0", "-fdebug-prefix-map="+dir+"=src", "-shared", "-fPIC", "-Wl,--build-id=0xde7b", "-o", f.path, "unit.cc")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s := open(t, Options{Reaching: true, Details: true, Names: DebugNames}, oneFile{f, "here"})
	seen := make(map[uint64]string)
	for name, linker := range map[string]bool{"plain": false, "_ZN4shop5totalEi": true} {
		sym, ok := f.symbols(t)[name]
		if !ok {
			t.Fatalf("no symbol %s", name)
		}
		frames, err := s.Ask(context.Background(), nil, f.at(sym.Value), Policy{})
		if err != nil || len(frames) != 1 {
			t.Fatalf("%s: got %+v, %v", name, frames, err)
		}
		d, v := frames[0].Details, frames[0]
		if v.Linkage != name || v.FromSymbol || d.Linker != linker || d.First != sym.Value || d.Split || v.File != "src/unit.cc" || d.Within != "src" {
			t.Errorf("%s: got %+v, %+v", name, v, *d)
		}
		if other, ok := seen[d.Entry]; ok || d.Entry == 0 {
			t.Errorf("%s and %q have the entry %#x", name, other, d.Entry)
		}
		seen[d.Entry] = name
	}
	pointer := f.symbols(t)["lambda"]
	want := Declaration{File: "src/unit.cc", CompDir: len("src/"), Dir: len("src/"), Line: 3, Within: "src"}
	if v, err := s.AskData(context.Background(), f.at(pointer.Value), Policy{}); err != nil || v.Declared != want {
		t.Errorf("got %+v, %v, want %+v", v.Declared, err, want)
	}
	for name, sym := range f.symbols(t) {
		if name != "_init" {
			continue
		}
		if frames, err := s.Ask(context.Background(), nil, f.at(sym.Value), Policy{}); err != nil || len(frames) > 0 {
			t.Errorf("a symbol names %+v, %v", frames, err)
		}
	}
}

// Without Reaching, Named must find a symbol by each of its names, and must return the address of
// the next symbol.
func TestNamedFindsAliases(t *testing.T) {
	f := build(t, "named aliases", `extern "C" {
int before(int x) { return x * 3; }
int spawn(int x) __attribute__((alias("before")));
int after(int x) { return x * 5; }
}`)
	s := open(t, Options{}, oneFile{f, "here"})
	named := func(name string) Extent {
		found, err := s.Named(context.Background(), f.at(0), name)
		if err != nil || len(found) != 1 {
			t.Fatalf("%s: got %v, %v", name, found, err)
		}
		return found[0]
	}
	before, after := named("before"), named("after")
	if before != named("spawn") || before.Size == 0 || before.Next != after.Addr {
		t.Errorf("got %#v, alias %#v, then %#v", before, named("spawn"), after)
	}
}
