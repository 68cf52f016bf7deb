package symbolize

import (
	"strconv"
	"strings"
	"testing"

	"github.com/symfilter/symfilter/internal/demangle"
	"github.com/symfilter/symfilter/internal/fuzztest"
)

// The expected names are the output of llvm-cxxfilt-19. Names with two underscores or a dot before
// the Z are not accepted by llvm-cxxfilt-19: their expected form is from llvm-symbolizer-19.
func TestDemangleAsLLVM(t *testing.T) {
	s := New(Options{OldRustAsLLVM: true})
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
		{"_Z1fIiEN2enIXsr2isIT_EE5valueES1_E4typeERS1_", "en<is<int>::value, int>::type f<int>(int&)"},
		{"_Z3getIiJEERT_R3tupIJS0_DpT0_EE", "int& get<int>(tup<int>&)"},
		{"_Z1fIJiEEN2enIX2isI1aDpT_EES1_E4typeES1_", "en<is<a, int>, a>::type f<int>(a)"},
		{"_ZNK1scvM1aiEv", "s::operator int a::*() const"},
		{"_Z1fIF1aM1siEEvv", "void f<a (int s::*)>()"},
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

// Names of Rust's old mangling are shown as by rustc's own demangler, without the hash.
func TestOldNamesOfRustAreRusts(t *testing.T) {
	s := New(Options{})
	defer s.Close()
	for _, test := range []struct{ mangled, want string }{
		{"_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE", "core::ptr::drop_in_place<alloc::string::String>"},
		{"_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17h0123456789abcdefE", "std::rt::lang_start::{{closure}}"},
		{"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE", "<alloc::string::String as core::fmt::Display>::fmt"},
		{"_ZN68_$LT$core..option..Option$LT$T$GT$$u20$as$u20$core..clone..Clone$GT$5clone17h0123456789abcdefE", "<core::option::Option<T> as core::clone::Clone>::clone"},
		{"_ZN4core5slice29_$LT$impl$u20$$u5b$T$u5d$$GT$3len17h0123456789abcdefE", "core::slice::<impl [T]>::len"},
		{"_ZN3foo17h05af221e174051e9E.llvm.123", "foo (.llvm.123)"},
		{"_ZN3foo17h05af221e174051e9E.cold.1", "foo (.cold.1)"},
		{"_ZN3foo17h05af221e174051e9Ev", "foo::h05af221e174051e9()"},     // parameters, so a C++ name
		{"_ZN3foo17h1111111111111111E", "foo::h1111111111111111"},        // not a hash
		{"_ZN3foo17h05af221e17405xxxE", "foo::h05af221e17405xxx"},        // not a hash
		{"_ZN3foo17h05af221e174051e9EE", "_ZN3foo17h05af221e174051e9EE"}, // not mangled
	} {
		if got := s.Demangle(test.mangled); got != test.want {
			t.Errorf("Demangle(%q)\n got %q\nwant %q", test.mangled, got, test.want)
		}
	}
}

// An index stores the demangled form of names that are demangled slowly, even if it equals the
// name, so the demangler is not called again.
func TestIndexesHoldSlowNamesOnly(t *testing.T) {
	for _, test := range []struct{ linkage, want string }{
		{"main", ""},
		{"", ""},
		{"_Z3foov", ""},
		{"_ZNSt6vectorIS_IiSaIiEESaIS1_EED2Ev.part.0", ""},
		{"_Z1fIiEDTcl1gfp_EET_", demangled("_Z1fIiEDTcl1gfp_EET_", false)},
		{"_ZN4core3fmt17h0123456789abcdefE", "core::fmt"},
		{"_RNvC6_123foo3bar", "123foo::bar"},
		{"_Z3foov@plt", "_Z3foov@plt"},
		{"_Z" + strings.Repeat("x", demangle.MaxMangled), "_Z" + strings.Repeat("x", demangle.MaxMangled)},
	} {
		if got := slowName(test.linkage); got != test.want {
			t.Errorf("%.40s: got %.60q, want %.60q", test.linkage, got, test.want)
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

// hostileNames returns names that take a demangler without limits forever, gigabytes, or the whole
// stack. n is the approximate length of the names.
func hostileNames(n int) map[string]string {
	// fill returns before, repetitions of unit, and after
	fill := func(before, unit, after string) string {
		return before + strings.Repeat(unit, max(1, (n-len(before)-len(after))/len(unit))) + after
	}
	// nest returns before, k times unit, middle, k times end, and after
	nest := func(before, unit, middle, end, after string) string {
		k := max(1, (n-len(before)-len(middle)-len(after))/(len(unit)+len(end)))
		return before + strings.Repeat(unit, k) + middle + strings.Repeat(end, k) + after
	}
	// refer appends units in which each # refers to the substitution of the previous unit
	refer := func(before, unit, after string) string {
		var name strings.Builder
		name.WriteString(before)
		for i := 0; name.Len()+len(unit)+6 < n-len(after); i++ {
			ref := "S_"
			if i > 0 {
				ref = "S" + strings.ToUpper(strconv.FormatInt(int64(i-1), 36)) + "_"
			}
			name.WriteString(strings.ReplaceAll(unit, "#", ref))
		}
		return name.String() + after
	}
	return map[string]string{
		"pointers":                     fill("_Z1f", "P", "i"),
		"pointers to const":            fill("_Z1f", "PK", "i"),
		"qualifiers":                   fill("_Z1f", "K", "i"),
		"complex numbers":              fill("_Z1fI", "C", "iEvv"),
		"exceptions":                   fill("_Z1f", "Do", "FvvE"),
		"functions":                    nest("_Z1f", "PF", "v", "E", ""),
		"functions of functions":       nest("_Z1f", "PF", "i", "vE", ""),
		"members":                      nest("_Z1f", "M1aF", "i", "vE", ""),
		"arrays":                       fill("_Z1f", "A_", "i"),
		"pointers to arrays":           fill("_Z1f", "PA3_", "i"),
		"open templates":               fill("_Z1fI", "S_I", ""),
		"templates":                    nest("_Z1f", "1AI", "i", "E", ""),
		"doubling":                     refer("_Z1f1A", "1AI##E", ""),
		"doubling functions":           refer("_Z1f1A", "PF##E", ""),
		"references to the one before": refer("_Z1fi", "P#", ""),
		"nested names":                 fill("_Z", "N", "1f"),
		"scopes":                       fill("_ZN", "1AIiE", "1fEv"),
		"local names":                  fill("_Z", "Z", "1fv"),
		"local names in functions":     nest("_Z", "Z", "1fv", "E1av", ""),
		"parentheses":                  fill("_Z1fI", "X", "Ev"),
		"expressions":                  fill("_Z1fIX", "ad", "Li0EEEvv"),
		"calls":                        nest("_Z1fIX", "cl1a", "Li0E", "E", "EEvv"),
		"types of expressions":         nest("_Z1fIiE", "DTcv", "i", "Li0EE", "v"),
		"lambdas":                      fill("_ZN", "UlvE_", "1fEv"),
		"lambdas in lambdas":           nest("_Z1f", "Ul", "i", "E_", ""),
		"pack expansions":              fill("_Z1f", "Dp", "i"),
		"packs side by side":           fill("_Z1fIJ"+strings.Repeat("i", n/4)+"EEv", "DpT_", ""),
		"packs in packs":               nest("_Z1fIJiiiiEEv", "Dp1AIT_", "T_", "E", ""),
		"empty packs":                  fill("_Z1fI", "JE", "Evv"),
		"conversion operators":         nest("_Z", "N1acvT_I", "i", "EE", ""),
		"more of them":                 nest("_Z1fI", "N1acvT_I", "i", "EE", "Evv"),
		"attributes":                   fill("_Z1f", "B1a", "v"),
		"clone suffixes":               fill("_Z1fv", ".a", ""),
		"suffix after an error":        fill("_Z1fI", "1AIiE", "Evv.Upper"),
		"block":                        fill("___Z", "P", "_block_invoke"),
		"a name of zeros":              fill("_Z", "0", ""),
		"rust: back references":        fill("_RNvC1a", "B_", ""),
		"rust: paths":                  nest("_R", "Nv", "C1a", "1b", ""),
		"rust: generics":               nest("_R", "INvC1a1b", "h", "E", ""),
		"rust: references":             fill("_RINvC1a1b", "R", "hE"),
		"rust: functions":              fill("_RINvC1a1b", "FE", "hE"),
		"rust: tuples":                 fill("_RINvC1a1bT", "T", "E"),
		"rust: doubling":               fill("_RINvC1a1b", "TB9_B9_", "EE"),
		"rust: huge base-62":           fill("_RNvC1a", "9", "b"),
		"rust: the old mangling":       fill("_ZN", "9$u7b$$u7d", "17h0123456789abcdefE"),
		"a long length":                "_Z99999999999999999999f",
		"invalid UTF-8":                "_Z3\xff\xfe\xfdv",
		"nothing but underscores":      fill("", "_", ""),
	}
}

// Demangling a name must take at most its budget of steps, whatever its length. The test bounds the
// allocated bytes, too, which shows that no step costs too much.
func TestDemangleHostile(t *testing.T) {
	fuzztest.WithoutRace(t)
	const most = 3 << 20 // bytes allocated
	for _, n := range []int{64, 512, 2048, demangle.MaxMangled, demangle.MaxMangled + 1, 300_000} {
		for what, mangled := range hostileNames(n) {
			var got string
			if testing.AllocsPerRun(1, func() { got = demangled(mangled, false) }) > most/16 {
				t.Errorf("%s, %d bytes: too many allocations", what, len(mangled))
			}
			before := fuzztest.Allocated()
			got = demangled(mangled, false)
			if allocated := fuzztest.Allocated() - before; allocated > most {
				t.Errorf("%s, %d bytes: %d KiB were allocated, want at most %d", what, len(mangled), allocated>>10, most>>10)
			}
			if got != mangled && len(got) > 1<<demangle.MaxShown+demangle.MaxMangled {
				t.Errorf("%s: %d bytes became %d", what, len(mangled), len(got))
			}
			if len(mangled) > demangle.MaxMangled && got != mangled {
				t.Errorf("%s: a name of %d bytes was demangled", what, len(mangled))
			}
		}
	}
}

// Mangled names that differ only in the depth of a type have different demangled names, unless
// these reach the limit of a demangled name.
func TestDistinctNamesAreShownDistinct(t *testing.T) {
	fuzztest.WithoutRace(t)
	for what, unit := range map[string]string{"pointers": "P", "lvalues": "PK", "arrays": "PA3_"} {
		seen := map[string]int{}
		for n := 1; len(unit)*n < demangle.MaxMangled-8; n += 97 {
			shown := demangled("_Z1f"+strings.Repeat(unit, n)+"i", false)
			if before, ok := seen[shown]; ok && len(shown) < 1<<demangle.MaxShown {
				t.Errorf("%s: %d and %d levels are both shown as %.40q…", what, before, n, shown)
			}
			seen[shown] = n
		}
	}
}

func TestNamesStayWithinTheirBudget(t *testing.T) {
	fuzztest.WithoutRace(t)
	var n names
	const budget = 1 << 20
	n.init(budget, false, false)
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
	for _, s := range []string{"_Z3foov", "_ZNSt6vectorIiSaIiEED2Ev", "_RNvC6_123foo3bar", "_RINvC1a1bTB9_B9_EE", "_Z1fI1AIiEEvT_", "___Z1fv_block_invoke", "._Z1fv.isra.0", "_ZN4core3fmt17h0123456789abcdefE.llvm.1"} {
		f.Add(s)
	}
	for _, n := range []int{40, 200, demangle.MaxMangled} {
		for _, s := range hostileNames(n) {
			f.Add(s)
		}
	}
	f.Fuzz(func(t *testing.T, s string) {
		defer fuzztest.Watch(t, s)()
		before := fuzztest.Allocated()
		demangled(s, true)
		got := demangled(s, false)
		if allocated := fuzztest.Allocated() - before; len(s) <= demangle.MaxMangled && allocated > 8<<20 {
			t.Errorf("%d bytes made it allocate %d MiB", len(s), allocated>>20)
		}
		if got != s && len(got) > 1<<demangle.MaxShown+demangle.MaxMangled {
			t.Errorf("%d bytes became %d", len(s), len(got))
		}
	})
}
