package report

import "testing"

func TestBareNames(t *testing.T) {
	for name, want := range map[string]string{
		"peek":                                           "peek",
		"ns::peek(int*)":                                 "peek",
		"int ns::most<int>(int, int)":                    "most<int>",
		"std::vector<int>::size() const":                 "size",
		"void f<0ul, 1u, 'a', x1u>()":                    "f<0, 1, 'a', x1u>",
		"(anonymous namespace)::leak(int)":               "leak",
		"a::b::operator()(int) const":                    "operator()",
		"std::ostream& operator<< <char>(std::ostream&)": "operator<< <char>",
		"a::operator bool() const":                       "operator bool",
		"operators::f(int)":                              "f",
		"a<b(c)>::d(e)":                                  "d",
		"std::string f[abi:cxx11](int)":                  "f",
		"app::~app()":                                    "~app",
		"main::{lambda(int)#1}::operator()(int) const":   "operator()",
		"": "",
	} {
		if got := BareName(name); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
