package demangle

import (
	"debug/elf"
	"os"
	"path/filepath"
	"strings"
	"testing"

	library "github.com/ianlancetaylor/demangle"
)

// nested returns prefix, n copies of open, middle, n copies of end, and suffix.
func nested(prefix, open, middle, end, suffix string, n int) string {
	return prefix + strings.Repeat(open, n) + middle + strings.Repeat(end, n) + suffix
}

// ended reports whether the demangler gave up on name after too many steps.
func ended(name string) bool {
	_, err := ToString(name, LLVMStyle, MaxLength(14))
	return err == ErrTooManySteps
}

// For each of these families of names, the library takes exponential, cubic or quadratic time.
// Names with few levels must be demangled. For names with many levels, the budget must end the
// work.
func TestTheBudgetEndsTheWork(t *testing.T) {
	for _, test := range []struct {
		name string
		of   func(n int) string
		few  int // levels within the budget
		many int // levels beyond the budget
	}{
		{"conversion operators", func(n int) string { return nested("_Z", "N1acvT_I", "i", "EE", "", n) }, 5, 30},
		{"conversion operators in arguments", func(n int) string { return nested("_Z1fI", "N1acvT_I", "i", "EE", "Evv", n) }, 5, 30},
		{"packs in packs", func(n int) string { return nested("_Z1fIJiiiiEEv", "Dp1AIT_", "T_", "E", "", n) }, 4, 200},
		{"packs side by side", func(n int) string {
			return "_Z1fIJ" + strings.Repeat("i", 70) + "EEv" + strings.Repeat("DpT_", n)
		}, 2, 900},
		{"qualifiers", func(n int) string { return nested("_Z1f", "K", "i", "", "", n) }, 100, 4000},
		{"exceptions", func(n int) string { return nested("_Z1f", "Do", "FvvE", "", "", n) }, 100, 2000},
		{"pointers", func(n int) string { return nested("_Z1f", "P", "i", "", "", n) }, 500, 4000},
		{"complex numbers", func(n int) string { return nested("_Z1f", "C", "i", "", "", n) }, 500, 4000},
		{"functions", func(n int) string { return nested("_Z1f", "PF", "i", "vE", "", n) }, 100, 1000},
		{"arrays", func(n int) string { return nested("_Z1f", "PA3_", "i", "", "", n) }, 100, 1000},
		{"members", func(n int) string { return nested("_Z1f", "M1aF", "i", "vE", "", n) }, 100, 680},
		{"templates", func(n int) string { return nested("_Z1f", "1AI", "i", "E", "", n) }, 100, 1020},
		{"packs of templates", func(n int) string { return nested("_Z1f", "1AIJ", "i", "EE", "", n) }, 100, 680},
		{"scopes", func(n int) string { return nested("_ZN", "1AIiE", "1f", "", "Ev", n) }, 100, 810},
		{"local names", func(n int) string { return nested("_Z", "Z", "1fv", "E1av", "", n) }, 20, 800},
		{"expressions", func(n int) string { return nested("_Z1fIX", "ad", "Li0E", "", "EEvv", n) }, 100, 2000},
		{"calls", func(n int) string { return nested("_Z1fIX", "cl1a", "Li0E", "E", "EEvv", n) }, 100, 810},
		{"attributes", func(n int) string { return nested("_Z1f", "B1a", "v", "", "", n) }, 100, 1360},
	} {
		if name := test.of(test.few); ended(name) {
			t.Errorf("%s: %d levels are too many", test.name, test.few)
		} else if _, err := ToString(name, LLVMStyle); err != nil {
			t.Errorf("%s: %d levels: %v", test.name, test.few, err)
		}
		name := test.of(test.many)
		if len(name) > 4096 {
			t.Errorf("%s: a name of %d bytes", test.name, len(name))
		}
		if !ended(name) {
			t.Errorf("%s: %d levels are within the budget", test.name, test.many)
		}
	}
}

// The budget must not change the text of any name in the installed C++ and LLVM libraries. Names
// with an unresolved name or a pack are not compared, since the copy corrects the library's text.
func TestNamesAreThoseOfTheLibrary(t *testing.T) {
	step := 20 // one of 20 names is compared
	if os.Getenv("TEST_LONG") == "1" {
		step = 1
	}
	compared := 0
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
				want, wantErr := library.ToString(s, library.LLVMStyle, library.MaxLength(14))
				if ended(s) {
					t.Errorf("%s: %s takes too many steps", name, s)
					continue
				}
				got, err := ToString(s, LLVMStyle, MaxLength(14))
				corrected := strings.Contains(s, "sr") || strings.Contains(s, "Dp")
				if got != want && !corrected || (err == nil) != (wantErr == nil) {
					t.Errorf("%s: %s\n got %s, %v\nwant %s, %v", name, s, got, err, want, wantErr)
				}
				compared++
			}
		}
	}
	if compared == 0 {
		t.Skip("no C++ library is installed")
	}
	t.Logf("%d names", compared)
}
