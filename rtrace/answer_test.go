package rtrace

import "testing"

// hasParameters must report whether a name ends with parameters. In a report, names without
// parameters get "()".
func TestParametersAreAppendedOnce(t *testing.T) {
	for _, c := range []struct {
		name string
		has  bool
	}{
		{"main", false},
		{"operator_init", false},
		{"f(int) const", true},
		{"f(int) (.isra.0)", true},
		{"take(operator_base*)", true},
		{"ns::my_operator(int)", true},
		{"(anonymous namespace)::f", false},
		{"(anonymous namespace)::f(int)", true},
		{"call<(A)1>", false},
		{"S::operator()", false},
		{"S::operator()(int) const", true},
		{"S::operator int", false},
		{"S::operator int() const", true},
		{"operator<", false},
		{"operator<(A const&, operator_base)", true},
		{"f<&A::operator()>(A)", true},
		{"main::{lambda(int)#1}::operator()", false},
		{"main::{lambda(int)#1}::operator()(int) const", true},
	} {
		if got := hasParameters(c.name); got != c.has {
			t.Errorf("hasParameters(%q) = %v, want %v", c.name, got, c.has)
		}
	}
}

// withoutCall must remove the "()" that a report writes after a function's name, but not the "()"
// of a call operator.
func TestNamesOfReportsAreSpeltAsThoseOfSymbols(t *testing.T) {
	for name, want := range map[string]string{
		"main()": "main", "main": "main", "ns::f(int)": "ns::f(int)", "A::operator()": "A::operator()", "A::operator()()": "A::operator()",
		"my_operator()": "my_operator", "": "", "()": "",
	} {
		if got := string(withoutCall([]byte(name))); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}
