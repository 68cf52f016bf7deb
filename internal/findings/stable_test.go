package findings

import (
	"testing"

	"github.com/symfilter/symfilter/internal/demangle"
	"github.com/symfilter/symfilter/symbolize"
)

func TestStableNames(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"f", "f"},
		{"f.constprop.0", "f"},
		{"f.constprop.0.isra.12", "f"},
		{"f.part.3.cold", "f"},
		{"f.cold.17", "f"},
		{"f.llvm.1234567890", "f"},
		{"f.lto_priv.0.lto_priv.1", "f"},
		{"f [clone .isra.0]", "f"},
		{"f(int) [clone .part.0] [clone .cold]", "f(int)"},
		{"memcpy@@GLIBC_2.14", "memcpy"},
		{"f.12", "f.12"},
		{"main.func1", "main.func1"},
		{"main.func1.2", "main.func1.2"},
		{".cold", ".cold"},
		{"a.cold.b", "a.cold.b"},
		{"", ""},
		{"sum<Pool<Order> >", "sum"},
		{"operator<", "operator<"},
		{"_ZN4core9panicking5panic17h0123456789abcdefE", "_ZN4core9panicking5panicE"},
		{"_ZN4core17h0123456789abcdegE", "_ZN4core17h0123456789abcdegE"},
		{"_ZN4acme4BookC2Ei", "_ZN4acme4BookC2Ei"},
		{"_ZN4acmeL4openEi.isra.0", "open"},
		{"_ZL1fv.__uniq.1234.llvm.5", "f"},
		{"_ZL1fIiEvT_", "f"},
		{"_ZN6ledger12_GLOBAL__N_13sumI4PoolILm64EEEElRKT_j", "sum"},
		{"_ZNK6ledger12_GLOBAL__N_13SumltERKS1_", "operator<"},
		{"_ZZ4mainENKUlvE_clEv", "operator()"},
		{"_ZN9inventory3runIZ4mainEUlvE_EEiT_", "run"},
		{"_ZNKR12_GLOBAL__N_11X1fEv", "f"},
		{"_ZN12_GLOBAL__N_11X1fB5cxx11Ev", "f"},
		{"_ZN12_GLOBAL__N_11XC2Ev", "X"},
		{"_ZN12_GLOBAL__N_11XD0Ev", "~X"},
		{"_ZN99999999999999999999991a", "_ZN99999999999999999999991a"},
		{"_ZN1", "_ZN1"},
	} {
		f := symbolize.Frame{Linkage: test.name, Func: demangle.Filter(test.name)}
		if got := StableName(&f); got != test.want {
			t.Errorf("%s, %s: got %s, want %s", test.name, f.Func, got, test.want)
		}
	}
}
