package symbolize

import (
	"strings"
	"testing"
	"time"

	"github.com/symfilter/symfilter/internal/fuzztest"
)

// The expected names are what llvm-cxxfilt-19 prints, but for those with two
// underscores or a dot before the Z, which it does not try and
// llvm-symbolizer-19 does.
func TestDemangleAsLLVM(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	for _, test := range []struct{ mangled, want string }{
		{"", ""},
		{"main", "main"},
		{"_Z", "_Z"},
		{"_R", "_R"},
		{"foo.isra.0", "foo.isra.0"},
		{"_start", "_start"},
		{"_Z3foov", "foo()"},
		{"__Z3foov", "foo()"},
		{"_____Z3foov", "_____Z3foov"},
		{"._Z3foov", ".foo()"},
		{"_Z3foov.isra.0", "foo() (.isra.0)"},
		{"_Z3foov.part.0.cold", "foo() (.part.0.cold)"},
		{"_Z3foov@plt", "_Z3foov@plt"},
		{"_Z1fIiEvT_", "void f<int>(int)"},
		{"_ZTV3foo", "vtable for foo"},
		{"_ZZ4mainENKUlvE_clEv.constprop.0.isra.1", "main::'lambda'()::operator()() const (.constprop.0.isra.1)"},
		{"_ZNSt6vectorIS_IiSaIiEESaIS1_EED2Ev", "std::vector<std::vector<int, std::allocator<int>>, std::allocator<std::vector<int, std::allocator<int>>>>::~vector()"},
		{"___Z3foov_block_invoke", "invocation function for block in foo()"},
		{"_ZN4core3fmt17h0123456789abcdefE", "core::fmt::h0123456789abcdef"},
		{"_ZN3foo17h05af221e174051e9E.llvm.123", "foo::h05af221e174051e9 (.llvm.123)"},
		{"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE.llvm.42", "std::rt::lang_start::_$u7b$$u7b$closure$u7d$$u7d$::h0123456789abcdef (.llvm.42)"},
		{"_ZN4core7a..b..c17h0123456789abcdefE.llvm.42", "core::a..b..c::h0123456789abcdef (.llvm.42)"},
		{"_ZN3fooE.Upper", "foo (.Upper)"},
		{"_RNvC6_123foo3bar", "123foo::bar"},
		{"_RNvC6_123foo3bar.llvm.123", "123foo::bar (.llvm.123)"},
		{"_GLOBAL__sub_I_main.cpp", "_GLOBAL__sub_I_main.cpp"},
		{"_GLOBAL__I__Z3foov", "_GLOBAL__I__Z3foov"},
		{"_ZGTtNSt11logic_errorC1EPKc", "_ZGTtNSt11logic_errorC1EPKc"},
	} {
		if got := s.Demangle(test.mangled); got != test.want {
			t.Errorf("Demangle(%q)\n got %q\nwant %q", test.mangled, got, test.want)
		}
		if got := s.Demangle(test.mangled); got != test.want {
			t.Errorf("Demangle(%q) from memory\n got %q\nwant %q", test.mangled, got, test.want)
		}
	}
}

func TestNoDemangleShowsNamesAsTheyAre(t *testing.T) {
	s := New(Options{NoDemangle: true})
	defer s.Close()
	if got, want := s.Demangle("_Z3foov"), "_Z3foov"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// hostileNames make a demangler without limits take seconds, gigabytes or the
// whole stack.
func hostileNames() map[string]string {
	double := "_Z1fI" // each level names the one before twice
	for range 60 {
		double += "S_I"
	}
	substitutions := func(n int) string {
		b := "_Z1f1AIiE"
		for i := range n {
			b += "1AIS" + string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i%36]) + "_S" + string("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[i%36]) + "_E"
		}
		return b
	}
	return map[string]string{
		"pointers at the limit":   "_Z1f" + strings.Repeat("P", maxMangled-5) + "i",
		"pointers beyond it":      "_Z1f" + strings.Repeat("P", 3_000_000) + "i",
		"functions":               "_Z1f" + strings.Repeat("PF", 2000) + "v" + strings.Repeat("E", 95),
		"open templates":          double,
		"doubling":                substitutions(36),
		"doubling, long":          substitutions(380),
		"nested names":            "_Z" + strings.Repeat("N", 4000) + "1f",
		"local names":             "_Z" + strings.Repeat("Z", 4000) + "1fv",
		"parentheses":             "_Z1fI" + strings.Repeat("X", 2000) + "E" + "v",
		"expressions":             "_Z1fIXad" + strings.Repeat("ad", 2000) + "E" + "v",
		"lambdas":                 "_ZN" + strings.Repeat("UlvE_", 800) + "1fEv",
		"arrays":                  "_Z1f" + strings.Repeat("A_", 2000) + "i",
		"pack expansions":         "_Z1f" + strings.Repeat("Dp", 2000) + "i",
		"qualifiers":              "_Z1f" + strings.Repeat("PK", 2000) + "i",
		"rust: back references":   "_RNvC1a" + strings.Repeat("B_", 2000),
		"rust: nested generics":   "_R" + strings.Repeat("I", 4000) + "C1a",
		"rust: tuples":            "_RINvC1a1bT" + strings.Repeat("T", 2000) + "E",
		"rust: doubling":          "_RINvC1a1b" + strings.Repeat("TB9_B9_", 500) + "EE",
		"rust: huge base-62":      "_RNvC1a" + strings.Repeat("9", 3000) + "b",
		"clone suffixes":          "_Z1fv" + strings.Repeat(".a", 2000),
		"a long length":           "_Z99999999999999999999f",
		"a name of zeros":         "_Z" + strings.Repeat("0", 4000),
		"block":                   "___Z" + strings.Repeat("P", 3000) + "_block_invoke",
		"invalid UTF-8":           "_Z3\xff\xfe\xfdv",
		"nothing but underscores": strings.Repeat("_", 1<<20),
	}
}

func TestDemangleHostile(t *testing.T) {
	for what, mangled := range hostileNames() {
		t.Run(what, func(t *testing.T) {
			defer fuzztest.Watch(t, mangled)()
			start := time.Now()
			got := demangled(mangled)
			t.Logf("%d bytes to %d in %v", len(mangled), len(got), time.Since(start))
			if got != mangled && len(got) > 1<<maxDemangled+maxMangled {
				t.Errorf("%d bytes became %d", len(mangled), len(got))
			}
			if len(mangled) > maxMangled && got != mangled {
				t.Errorf("a name of %d bytes was demangled", len(mangled))
			}
		})
	}
}

func TestNamesStayWithinTheirBudget(t *testing.T) {
	var n names
	const budget = 1 << 20
	n.init(budget, false)
	for i := range 100_000 {
		mangled := "_Z" + "9abcdefg" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676%26)) + string(rune('a'+i/17576%26)) + "v"
		n.get(mangled)
		if got := n.size.Load(); got > budget {
			t.Fatalf("after %d names: %d bytes, want at most %d", i+1, got, budget)
		}
	}
	if got := n.size.Load(); got < budget/4 {
		t.Errorf("holds %d bytes of %d: it forgets too early", got, budget)
	}
}

func TestLongNamesAreCut(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	if got := len(s.Demangle(strings.Repeat("x", maxName+1))); got != maxName {
		t.Errorf("got %d bytes, want %d", got, maxName)
	}
}

func FuzzDemangle(f *testing.F) {
	for _, s := range []string{"_Z3foov", "_ZNSt6vectorIiSaIiEED2Ev", "_RNvC6_123foo3bar", "_RINvC1a1bTB9_B9_EE", "_Z1fI1AIiEEvT_", "___Z1fv_block_invoke", "._Z1fv.isra.0"} {
		f.Add(s)
	}
	for _, s := range hostileNames() {
		if len(s) <= maxMangled {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer fuzztest.Watch(t, s)()
		got := demangled(s)
		if got != s && len(got) > 1<<maxDemangled+maxMangled {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
	})
}
