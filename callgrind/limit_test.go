package callgrind

import (
	"fmt"
	"math"
	"testing"
)

func TestLimitsAreParsed(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"Ir=10000", "total Ir 10000"},
		{"Ir=700k", "total Ir 700000"},
		{"Ir=1.5M", "total Ir 1500000"},
		{"Ir=2G", "total Ir 2000000000"},
		{"Ir=2,496,148", "total Ir 2496148"},
		{"Ir=0", "total Ir 0"},
		{"Ir=5%", "total Ir 5%"},
		{"Ir=+5%", "total Ir 5%"},
		{"Ir=+0.5%", "total Ir 5/10^1%"},
		{"Ir=-12.25%", "total Ir -1225/10^2%"},
		{"main:Ir=+1%", "main inclusive Ir 1%"},
		{"work(int):Ir=700k", "work(int) inclusive Ir 700000"},
		{"work(int).self:Ir=7", "work(int) self Ir 7"},
		{"std::vector<int>::push_back(int const&):Dr=9", "std::vector<int>::push_back(int const&) inclusive Dr 9"},
		{"operator==(A, B):Ir=9", "operator==(A, B) inclusive Ir 9"},
		{"operator=(A):Ir=9", "operator=(A) inclusive Ir 9"},
		{"[libz.so]:Ir=1k", "object libz.so Ir 1000"},
		{"f[abi:cxx11]():Ir=1", "f[abi:cxx11]() inclusive Ir 1"},
		{"php::strlen:Time_(10ns)=40", "php::strlen inclusive Time_(10ns) 40"},

		{"Ir", `"Ir" has no bound: write [FUNCTION:]EVENT=BOUND, such as Ir=+1% or main:Ir=700k`},
		{"Ir=", `"Ir=": the bound "" is neither a count, such as 10000 or 700k, nor a change, such as +5%`},
		{"Ir=five", `"Ir=five": the bound "five" is neither a count, such as 10000 or 700k, nor a change, such as +5%`},
		{"Ir=+5", `"Ir=+5": the bound "+5" is neither a count, such as 10000 or 700k, nor a change, such as +5%`},
		{"Ir=1.5", `"Ir=1.5": the bound "1.5" is neither a count, such as 10000 or 700k, nor a change, such as +5%`},
		{"Ir=1e9%", `"Ir=1e9%": the bound "1e9%" is neither a count, such as 10000 or 700k, nor a change, such as +5%`},
		{"Ir=99999999999G", `"Ir=99999999999G": the bound "99999999999G" is neither a count, such as 10000 or 700k, nor a change, such as +5%`},
		{"Ir=0.00000001%", `"Ir=0.00000001%": the bound "0.00000001%" is neither a count, such as 10000 or 700k, nor a change, such as +5%`},
		{"=5", `"=5" names no event, such as Ir`},
		{"main:=5", `"main:=5" names no event, such as Ir`},
		{"main:Ir=100Ir=1", `"main:Ir=100Ir=1" names no event, such as Ir`},
		{":Ir=5", `":Ir=5" has no function before the colon`},
		{"[]:Ir=5", `"[]:Ir=5" has no function before the colon`},
	} {
		l, err := ParseLimit(c.text)
		got := "total"
		switch {
		case l.object != "":
			got = "object " + l.object
		case l.function != "" && l.self:
			got = l.function + " self"
		case l.function != "":
			got = l.function + " inclusive"
		}
		got += fmt.Sprintf(" %s %d", l.event, l.bound)
		if l.places > 0 {
			got += fmt.Sprintf("/10^%d", l.places)
		}
		if l.relative {
			got += "%"
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.text, got, c.want)
		}
	}
}

// A cost may be equal to its bound, a required decrease must be reached, and costs of any size are
// compared exactly.
func TestLimitsAreExact(t *testing.T) {
	for _, c := range []struct {
		limit         string
		before, after int64
		holds         bool
	}{
		{"Ir=100", 0, 100, true},
		{"Ir=100", 0, 101, false},
		{"Ir=+5%", 100, 105, true},
		{"Ir=+5%", 100, 106, false},
		{"Ir=+5%", 100, 50, true},
		{"Ir=+0%", 100, 100, true},
		{"Ir=+0%", 100, 101, false},
		{"Ir=+5%", 0, 0, true},
		{"Ir=+5%", 0, 1, false},
		{"Ir=-5%", 100, 95, true},
		{"Ir=-5%", 100, 96, false},
		{"Ir=-5%", 100, 101, false},
		{"Ir=-5%", 0, 0, true},
		{"Ir=-100%", 100, 0, true},
		{"Ir=-100%", 100, 1, false},
		{"Ir=+0.1%", 1000, 1001, true},
		{"Ir=+0.1%", 999, 1000, false},
		{"Ir=+100%", math.MaxInt64 / 2, math.MaxInt64 - 1, true},
		{"Ir=+100%", math.MaxInt64 / 2, math.MaxInt64, false},
		{"Ir=+1%", math.MinInt64, math.MaxInt64, false},
		{"Ir=+0.000001%", math.MaxInt64 - 1, math.MaxInt64, true},
		{"Ir=+5%", -100, -95, true},
		{"Ir=+5%", -100, -94, false},
	} {
		l, err := ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		if got := l.holds(c.before, c.after); got != c.holds {
			t.Errorf("%s for %d to %d: %v, want %v", c.limit, c.before, c.after, got, c.holds)
		}
	}
}

// If rounding would put a change on the other side of its limit, the change must be printed with
// more decimal places.
func TestChangesAreRoundedOnTheirSide(t *testing.T) {
	for _, c := range []struct {
		limit         string
		before, after int64
		want          string
	}{
		{"Ir=+1%", 2_496_148, 2_477_488, "-0.7% holds"},
		{"Ir=+1%", 1_000_000, 1_010_001, "+1.0001% exceeded"},
		{"Ir=-1%", 1_000_000, 990_001, "-0.9999% exceeded"},
		{"Ir=+1%", 1_000_000, 1_010_000, "+1.0% holds"},
		{"Ir=+0.25%", 10_000, 10_025, "+0.2% holds"},
		{"Ir=+1%", 0, 1_234, "0 to 1,234 exceeded"},
		{"Ir=700k", 0, 739_925, "739,925 exceeded"},
	} {
		l, err := ParseLimit(c.limit)
		if err != nil {
			t.Fatal(err)
		}
		v := verdict{limit: &l, before: c.before, after: c.after, holds: l.holds(c.before, c.after)}
		if got := v.value() + " " + v.word(); got != c.want {
			t.Errorf("%s for %d to %d: %s, want %s", c.limit, c.before, c.after, got, c.want)
		}
	}
}
