package demangle

import (
	"debug/elf"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// inFull returns the expected result of Quick.Show: the library's text for the name without its
// suffix.
func inFull(mangled, suffix string) (shown string, err error) {
	tree, err := ToAST(strings.TrimSuffix(mangled, suffix), LLVMStyle)
	if err != nil {
		return "", err
	}
	return astToString(tree, []Option{LLVMStyle, MaxLength(MaxShown)})
}

func TestQuickNames(t *testing.T) {
	for _, test := range []struct{ mangled, want string }{
		{"_Z3foov", "foo()"},
		{"_Z3fooiz", "foo(int, ...)"},
		{"_ZN3foo3barE", "foo::bar"},
		{"_ZNK3foo3barEv", "foo::bar() const"},
		{"_ZNKR3foo3barEv", "foo::bar() const &"},
		{"_ZN3fooC1Ev", "foo::foo()"},
		{"_ZN3fooIiED0Ev", "foo<int>::~foo()"},
		{"_ZN1dCI21bEi", "d::d(int)"},
		{"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f()"},
		{"_Z1fIiEvT_", "void f<int>(int)"},
		{"_Z1fIRiEvOT_", "void f<int&>(int&)"},
		{"_Z1fIOiEvRT_", "void f<int&&>(int&)"},
		{"_Z1fIKiEvRKT_", "void f<int const>(int const&)"},
		{"_Z1fIJiRKcEEvDpOT_", "void f<int, char const&>(int&&, char const&)"},
		{"_Z1fIJEEvDpRKT_", "void f<>()"},
		{"_Z1fIJisEEvDpRKSt4pairIT_1aES4_S4_", ""}, // refers into a pack
		{"_Z1fIJ1a1bEE1tIDpT_ES3_", ""},            // refers to a pack
		{"_Z1fPFivE", "f(int (*)())"},
		{"_Z1fPFiPFvcEES0_S1_", "f(int (*)(void (*)(char)), void (*)(char), int (void (*)(char)))"},
		{"_Z1fKPDoFvvE", "f(void (* const)() noexcept)"},
		{"_Z1fRA3_KcS1_", "f(char const (&) [3], char const (&) [3])"},
		{"_Z1fM1aKFvvEM1ai", "f(void (a::*)() const, int a::*)"},
		{"_ZN1aIXadL_Z1fvEELi3ELb1ELN1b1eE2EE1mEn", "a<&f(), 3, true, (b::e)2>::m(__int128)"},
		{"_ZZ4mainENKUlT_iE0_clIcEEDaS_i", "auto main::'lambda0'(auto, int)::operator()<char>(char, int) const"},
		{"_ZZN1aC1EvEUt_", "a::a()::'unnamed'"},
		{"_ZNSaIcED2Ev", "std::allocator<char>::~allocator()"},
		{"_ZNSaIcED2D2E", ""}, // the class is a destructor
		{"_ZN1acvbEv", "a::operator bool()"},
		{"_ZN1alsIiEEvv", "void a::operator<< <int>()"},
		{"_Z1fB5cxx11v", "f[abi:cxx11]()"},
		{"_ZThn16_N1a1fEv", "non-virtual thunk to a::f()"},
		{"_ZTV1a", "vtable for a"},

		{"_ZN1acvT_IiEEv", ""},       // a conversion to a parameter
		{"_Z1fIiEDTcl1gfp_EET_", ""}, // an expression
		{"_Z1fPPFPFvvEvE", ""},       // a function that returns a pointer to a function
		{"_ZNSsC1Ev", ""},            // the long name of a string
		{"_Z1fv.Upper", ""},
		{"_Z1f", "f"},
		{"_Z1fE", ""},
		{"_Z1fS_", ""},
		{"_Z", ""},
		{"main", ""},
	} {
		got, suffix, ok := new(Quick).Show(test.mangled)
		if got != test.want || ok != (test.want != "") || suffix != "" {
			t.Errorf("%s:\n got %q, %q, %v\nwant %q", test.mangled, got, suffix, ok, test.want)
		}
		if full, err := inFull(test.mangled, ""); ok && full != got {
			t.Errorf("%s:\n got %q\nthe library has %q, %v", test.mangled, got, full, err)
		}
	}
	if got, suffix, ok := new(Quick).Show("_Z3foov.part.0.cold"); got != "foo()" || suffix != ".part.0.cold" || !ok {
		t.Errorf("got %q, %q, %v", got, suffix, ok)
	}
}

// Quick must demangle nearly all names of the installed C++ libraries, to the same text as the
// library.
func TestQuickNamesAreThoseOfTheLibrary(t *testing.T) {
	step := 20 // one of 20 names is compared
	if os.Getenv("TEST_LONG") == "1" {
		step = 1
	}
	names, quick := 0, 0
	var q Quick
	for _, pattern := range []string{"/usr/lib/*/libstdc++.so.6", "/usr/lib/*/libLLVM*.so*", "/usr/lib/llvm-*/lib/libclang-cpp.so*", "/usr/lib/*/libboost_*.so*"} {
		files, _ := filepath.Glob(pattern)
		for _, name := range files {
			f, err := elf.Open(name)
			if err != nil {
				continue // a linker script
			}
			symbols, _ := f.DynamicSymbols()
			f.Close()
			for i := 0; i < len(symbols); i += step {
				s := symbols[i].Name
				if !strings.HasPrefix(s, "_Z") {
					continue
				}
				names++
				got, suffix, ok := q.Show(s)
				if !ok {
					continue
				}
				quick++
				if want, err := inFull(s, suffix); got != want {
					t.Errorf("%s: %s\n got %s\nwant %s, %v", name, s, got, want, err)
				}
			}
		}
	}
	if names == 0 {
		t.Skip("no C++ library is installed")
	}
	t.Logf("%d of %d names are quick", quick, names)
	if quick*100 < names*97 {
		t.Errorf("%d of %d names are quick, want 97 %%", quick, names)
	}
}

func TestQuickNamesAllocateTheirTextOnly(t *testing.T) {
	fuzztest.WithoutRace(t)
	var q Quick
	const name = "_ZNSt6vectorIS_IiSaIiEESaIS1_EED2Ev"
	if n := testing.AllocsPerRun(100, func() { q.Show(name) }); n > 1 {
		t.Errorf("%v allocations", n)
	}
}

// A made generates random mangled names by the grammar. Many of them are invalid.
type made struct{ *rand.Rand }

// one returns one of the given texts, chosen at random. It replaces the word T by a type, A by
// template arguments, N by a name, I by an identifier, and F by a function with its parameters. It
// removes blanks, and the prefix "|" of other words.
func (m made) one(depth int, of ...string) string {
	var b strings.Builder
	for _, part := range strings.Split(of[m.IntN(len(of))], " ") {
		switch part {
		case "T":
			b.WriteString(m.typ(depth - 1))
		case "A":
			b.WriteString(m.arguments(depth - 1))
		case "N":
			b.WriteString(m.name(depth - 1))
		case "I":
			b.WriteString(m.one(0, "1a", "1b", "12_GLOBAL__N_1", "3abcB1t"))
		case "F":
			b.WriteString(m.function(depth - 1))
		default:
			b.WriteString(strings.TrimPrefix(part, "|"))
		}
	}
	return b.String()
}

func (m made) reference() string {
	return m.one(0, "S_", "S0_", "S1_", "S2_", "S3_", "S4_", "S5_", "S6_", "S7_", "T_", "T_", "T0_", "T1_")
}

func (m made) typ(depth int) string {
	if depth <= 0 {
		return m.one(0, "i", "c", "v", "Dn", "1a", "1b", "Ss", "St1c", m.reference(), m.reference())
	}
	return m.one(depth, "i", "| K T", "P T", "R T", "O T", "PK T", "RK T", "1a A", "N", "St1v A", "|Sa A", "PF T T |E", "F T T |E", "PKF T |vE", "F T |DpT_E",
		"R |A3_ T", "|A2_ T", "|M 1a T", "|M N |F T |vE", "|M1aKF T |iE", "|DoFvvE", "|Dp T", "|DpO T", "|DpR T", "|DpRK T", "|Ul T |E_", "|Ul T T |E0_",
		"|Ut_", "|Z F |E N", "VK T", m.reference(), m.reference(), m.reference()+" A")
}

func (m made) arguments(depth int) string {
	return m.one(depth, "|I T |E", "|I T T |E", "|I |J T T |E |E", "|IJEE", "|I T |J T |E |E", "|ILi2E T |E", "|ILb1EE", "|IXadL_Z F |EEE", "|I |DpT_ |E", "|IL N |3EE", "|IXT_EE")
}

func (m made) name(depth int) string {
	if depth <= 0 {
		return m.one(0, "1a", "N1a1bE")
	}
	return m.one(depth, "I", "I A", "|N I I |E", "|N I A I |E", "|N I I A |E", "|NK I I |E", "|N I |C1E", "|N I A |C2E", "|N I A |D2E", "|N I |ls A |E", "|N I |clE",
		"|N I |cv T |E", "|Z F |E I", "|Z F |ENK|Ul T |E_ |clE", "|Z F |ENK|UlT_E_ |cl A |E", "|N I |CI1 T |E", "|St I A", "|NSt I A I |E", "|N "+m.reference()+" I |E", "|N "+m.reference()+" |C1E",
		"|N "+m.reference()+" I A |E", "|N I |Ut_ I |E", "|L I", "|Z F |E NK I I |E")
}

func (m made) function(depth int) string {
	return m.one(depth, "N |v", "N T", "N T T", "N T T T", "N T |DpT_", "N |v |DpOT0_", "N", "N T |P T |DpRKT1_")
}

// Quick must agree with the library for names generated by the grammar.
func TestQuickNamesOfTheGrammar(t *testing.T) {
	n := 20_000
	if os.Getenv("TEST_LONG") == "1" {
		n = 2_000_000
	}
	m := made{rand.New(rand.NewPCG(1, 2))}
	quick, valid := 0, 0
	var q Quick
	for range n {
		name := "_Z" + m.function(4)
		if len(name) > 300 {
			continue
		}
		got, suffix, ok := q.Show(name)
		if want, err := inFull(name, suffix); err == nil {
			if valid++; ok {
				quick++
			}
			if ok && got != want {
				t.Errorf("%s\n got %s\nwant %s", name, got, want)
			}
		} else if ok {
			t.Errorf("%s\n got %s, want an error: %v", name, got, err)
		}
	}
	t.Logf("%d names, %d are right, %d are quick", n, valid, quick)
	if quick*2 < valid {
		t.Errorf("%d of %d names are quick, want half", quick, valid)
	}
}

// FuzzQuick checks that Quick agrees with the library for any name, unless the library gives up.
func FuzzQuick(f *testing.F) {
	for _, s := range []string{"_Z1fIJiRKcEEvDpOT_", "_Z1fPFiPFvcEES0_S1_", "_ZZ4mainENKUlT_iE0_clIcEEDaS_i", "_Z1fM1aKFvvEM1ai", "_Z1fRA3_KcS1_",
		"_ZN1aIXadL_Z1fvEELi3ELb1ELN1b1eE2EE1mEn", "_ZNSaIcED2Ev", "_ZNSaIcED2D2E", "_ZN1dCI21bEi", "_ZThn16_N1a1fEv.part.0", "_Z1fIKiEvRKT_OS0_S2_",
		"_ZNSt3mapIPKcSt6vectorIS1_SaIS1_EESt4lessIS1_ESaISt4pairIKS1_S4_EEEixERS8_", "_ZNKRSt8optionalIiE5valueB5cxx11Ev", "_Z1gIZ1fvEUlvE_EvOT_PS1_"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer fuzztest.Watch(t, s)()
		got, suffix, ok := new(Quick).Show(s)
		if !ok {
			return
		}
		if want, err := inFull(s, suffix); err != ErrTooManySteps && (got != want || err != nil) {
			t.Errorf("%q\n got %s\nwant %s, %v", s, got, want, err)
		}
	})
}
