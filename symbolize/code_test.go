package symbolize

import (
	"cmp"
	"context"
	"debug/elf"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
)

func TestCodeNamesFunctionsFilesAndLines(t *testing.T) {
	f := build(t, "shop", source)
	addr := f.symbols(t)
	for _, test := range []struct {
		name, flags string // flags of objcopy
		options     Options
		want        map[string]string // by "symbol" or "symbol+offset"
	}{{
		name: "with debug information",
		want: map[string]string{
			"entry":              "entry /src/shop.cc:17:35\n",
			"_ZN4shop4failEi":    "shop::fail(int) /src/shop.cc:8:50\n",
			"_ZN4shopL5localEi":  "shop::local(int) /src/shop.cc:13:98\n",
			"bare+1":             "bare +1\n",
			"_init+100000000000": "",
		},
	}, {
		name:    "with names as the linker knows them",
		options: Options{NoDemangle: true},
		want: map[string]string{
			"entry":           "entry /src/shop.cc:17:35\n",
			"_ZN4shop4failEi": "_ZN4shop4failEi /src/shop.cc:8:50\n",
		},
	}, {
		name:  "with a symbol table only",
		flags: "--strip-debug",
		want: map[string]string{
			"entry":               "entry\n",
			"_ZN4shopL5localEi+3": "shop::local(int) +3\n",
			"bare+1":              "bare +1\n",
		},
	}, {
		name:  "with dynamic symbols only",
		flags: "--strip-all",
		want: map[string]string{
			"entry":             "entry\n",
			"_ZN4shop4failEi+1": "shop::fail(int) +1\n",
			"_ZN4shopL5localEi": "",
		},
	}, {
		name:  "with debug information only",
		flags: "--only-keep-debug",
		want: map[string]string{
			"entry":             "entry /src/shop.cc:17:35\n",
			"_ZN4shopL5localEi": "shop::local(int) /src/shop.cc:13:98\n",
			"bare+1":            "bare +1\n",
		},
	}, {
		name:  "with compressed debug information",
		flags: "--compress-debug-sections=zlib",
		want: map[string]string{
			"entry": "entry /src/shop.cc:17:35\n",
		},
	}} {
		t.Run(test.name, func(t *testing.T) {
			v := f
			if test.flags != "" {
				v = f.variant(t, test.flags)
			}
			s := open(t, test.options, oneFile{v, "here"})
			got := make(map[string]string)
			for where := range test.want {
				name, plus, _ := strings.Cut(where, "+")
				var offset uint64
				fmt.Sscan(plus, &offset)
				sym, ok := addr[name]
				if !ok {
					t.Fatalf("no symbol %s", name)
				}
				got[where] = code(s, v.at(sym.Value+offset))
			}
			if diff := gocmp.Diff(got, test.want); diff != "" {
				t.Errorf("got -, want +\n%s", diff)
			}
		})
	}
}

// textAddresses returns all addresses of f's code.
func (f fixture) textAddresses(t testing.TB) (addrs []uint64) {
	t.Helper()
	e, err := elf.Open(f.path)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	s := e.Section(".text")
	for a := s.Addr; a < s.Addr+s.Size; a++ {
		addrs = append(addrs, a)
	}
	return addrs
}

// llvm returns the output of llvm-symbolizer for each address.
func (f fixture) llvm(t testing.TB, addrs []uint64, flags ...string) map[uint64]string {
	t.Helper()
	cmd := exec.Command(tool(t, "llvm-symbolizer-19"), append(flags, "--obj="+f.path)...)
	var in strings.Builder
	for _, a := range addrs {
		fmt.Fprintf(&in, "%#x\n", a)
	}
	cmd.Stdin = strings.NewReader(in.String())
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	answers := strings.Split(strings.TrimSuffix(string(out), "\n\n"), "\n\n")
	if len(answers) != len(addrs) {
		t.Fatalf("%d answers to %d addresses", len(answers), len(addrs))
	}
	byAddr := make(map[uint64]string)
	for i, a := range addrs {
		byAddr[a] = answers[i] + "\n"
	}
	return byAddr
}

// asLLVM formats frames like llvm-symbolizer.
func asLLVM(frames []Frame) string {
	var b strings.Builder
	if len(frames) == 0 {
		return "??\n??:0:0\n"
	}
	for _, f := range frames {
		name, file := f.Func, cmp.Or(f.File, f.SymbolFile)
		if name == "" {
			name = "??"
		}
		if file == "" {
			file = "??"
		}
		fmt.Fprintf(&b, "%s\n%s:%d:%d\n", name, file, f.Line, f.Column)
	}
	return b.String()
}

func TestCodeIsThatOfLLVM(t *testing.T) {
	for _, flags := range []string{"-O0", "-O1", "-O2", "-O3", "-gdwarf-4", "-gdwarf-2", "-ffunction-sections", "-flto"} {
		t.Run(flags, func(t *testing.T) {
			f := build(t, "shop", source, flags)
			addrs := f.textAddresses(t)
			want := f.llvm(t, addrs)
			s := open(t, Options{Reaching: true}, oneFile{f, "here"})
			plain := open(t, Options{}, oneFile{f, "here"})
			differ := 0
			for _, a := range addrs {
				frames, err := s.Ask(context.Background(), nil, f.at(a), Policy{})
				if err != nil {
					t.Fatal(err)
				}
				if got := asLLVM(frames); got != want[a] {
					if differ++; differ < 5 {
						t.Errorf("%#x\n got\n%s\nwant\n%s", a, got, want[a])
					}
				}
				plain, err := plain.Ask(context.Background(), nil, f.at(a), Policy{})
				if got, want := text(plain), text(frames); got != want || err != nil {
					t.Errorf("%#x, with the default options: got %q, %v; want %q", a, got, err, want)
				}
				for _, f := range plain {
					if f.SymbolFile != "" {
						t.Errorf("%#x: %s was looked up, and the default style does not show it", a, f.SymbolFile)
					}
				}
			}
			if differ > 0 {
				t.Errorf("%d of %d addresses differ", differ, len(addrs))
			}
		})
	}
}

func TestNoInlinesGivesTheCalledFunctionAndItsOwnLine(t *testing.T) {
	f := build(t, "shop", source)
	all := open(t, Options{}, oneFile{f, "here"})
	one := open(t, Options{NoInlines: true}, oneFile{f, "here"})
	inlined := 0
	for _, a := range f.textAddresses(t) {
		frames, err := all.Ask(context.Background(), nil, f.at(a), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		want := frames
		if len(frames) > 1 {
			inlined++
			want = frames[len(frames)-1:]
		}
		got, err := one.Ask(context.Background(), nil, f.at(a), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(got, want); diff != "" {
			t.Fatalf("%#x: got -, want +\n%s", a, diff)
		}
	}
	if inlined == 0 {
		t.Error("the fixture has no inlined calls")
	}
}

// With ValgrindNames, functions have names from the symbol table, and inlined calls have names from
// DW_AT_name, as in Valgrind.
func TestNamesAreAsValgrindPrintsThem(t *testing.T) {
	f := build(t, "shop", source)
	linkage := open(t, Options{}, oneFile{f, "here"})
	short := open(t, Options{Names: ShortNames}, oneFile{f, "here"})
	valgrind := open(t, Options{Names: ValgrindNames}, oneFile{f, "here"})
	differ := 0
	for _, a := range f.textAddresses(t) {
		var all [3][]Frame
		for i, s := range []*Symbolizer{linkage, short, valgrind} {
			var err error
			if all[i], err = s.Ask(context.Background(), nil, f.at(a), Policy{}); err != nil {
				t.Fatal(err)
			}
		}
		want := all[0]
		for i := range want {
			if want[i].Inlined {
				differ += strings.Compare(want[i].Func, all[1][i].Func) & 1
				want[i] = all[1][i]
			}
		}
		if diff := gocmp.Diff(all[2], want); diff != "" {
			t.Fatalf("%#x: got -, want +\n%s", a, diff)
		}
	}
	if differ == 0 {
		t.Error("the fixture has no inlined calls with parameters")
	}
}

func TestCodeAppends(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{f, "here"})
	first := Frame{Func: "first"}
	dst := []Frame{first}
	for _, a := range f.textAddresses(t) {
		alone, err := s.Ask(context.Background(), nil, f.at(a), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		dst, err = s.Ask(context.Background(), dst[:1], f.at(a), Policy{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := gocmp.Diff(dst, append([]Frame{first}, alone...)); diff != "" {
			t.Fatalf("%#x: got -, want +\n%s", a, diff)
		}
	}
}

func TestDataClaimsNothingBeyondASymbol(t *testing.T) {
	f := build(t, "shop", source)
	addr := f.symbols(t)
	s := open(t, Options{}, oneFile{f, "here"})
	const none = "no symbol"
	for _, test := range []struct {
		symbol string
		offset uint64
		want   string
	}{
		{"table", 0, "table+0 of 24"},
		{"table", 23, "table+23 of 24"},
		{"table", 24, "completed.0+0 of 1"}, // the next variable
		{"label", 0, "label+0 of 0"},
		{"label", 8, none},
		{"bare", 2, "bare+2 of 4"},
		{"_ZN4shop4sinkE", 3, "shop::sink+3 of 4"},
		{"_ZN4shop4sinkE", 1 << 40, none},
	} {
		sym, ok := addr[test.symbol]
		if !ok {
			t.Fatalf("no symbol %s", test.symbol)
		}
		v, err := s.AskData(context.Background(), f.at(sym.Value+test.offset), Policy{})
		got := fmt.Sprintf("%s+%d of %d", v.Name, v.Offset, v.Size)
		if err == ErrNoSymbol {
			got = none
		} else if err != nil {
			t.Fatal(err)
		}
		if got != test.want {
			t.Errorf("%s+%d: got %q, want %q", test.symbol, test.offset, got, test.want)
		}
	}
}

func TestKnownAddressesAreAnsweredWithoutAllocation(t *testing.T) {
	f := build(t, "shop", source)
	s := open(t, Options{}, oneFile{f, "here"})
	addrs := f.textAddresses(t)
	var dst []Frame
	ask := func() {
		for _, a := range addrs {
			var err error
			if dst, err = s.Ask(context.Background(), dst[:0], f.at(a), Policy{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	ask()
	if got := testing.AllocsPerRun(10, ask); got > 0 {
		t.Errorf("%d addresses took %v allocations, want 0", len(addrs), got)
	}
}

func BenchmarkKnownAddress(b *testing.B) {
	f := build(b, "shop", source)
	s := open(b, Options{}, oneFile{f, "here"})
	l := f.at(f.symbols(b)["entry"].Value)
	var dst []Frame
	b.ReportAllocs()
	for b.Loop() {
		var err error
		if dst, err = s.Ask(context.Background(), dst[:0], l, Policy{}); err != nil {
			b.Fatal(err)
		}
	}
}
