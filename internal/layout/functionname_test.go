package layout

import (
	"strings"
	"testing"
)

// argumentsOf must return the text between « and » in each name, or an empty range without these
// marks.
func TestArgumentsOfNames(t *testing.T) {
	for _, want := range []string{
		"main", "f()", "f«(int)»", "f«(int)» const", "f«(void (*)(int))»", "ns::f<int (*)(int)>«(int, long)» const &",
		"(anonymous namespace)::f", "(anonymous namespace)::f«(int)»", "ns::(anonymous namespace)::f<a>", "ns::{lambda(int)#1}::operator()«(int)» const",
		"X::operator()", "X::operator()() const", "f«(int)»+0x12", "main+0x12", "f(int)::{lambda()#1}", "f«(int)» [clone .cold]",
		"<a::B as c::D>::e", "core::ops::function::FnOnce<(A,)>::call", "main.(*T).run", "f)", "(a)", ")", "(", "", "??",
	} {
		name := strings.NewReplacer("«", "", "»", "").Replace(want)
		from, to := argumentsOf(name)
		got := name
		if from < to {
			got = name[:from] + "«" + name[from:to] + "»" + name[to:]
		}
		if got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}

func TestBriefNames(t *testing.T) {
	for name, want := range map[string]string{
		"main":                        "main",
		"raise+0x12":                  "raise",
		"void ns::run<int>(int)":      "ns::run<…>",
		"operator new(unsigned long)": "operator new",
		"X::operator bool() const":    "X::operator bool() const",
		"my_operator f(int)":          "f",
		"bool std::operator< <char>(std::string const&, std::string const&)":                             "std::operator< <…>",
		"bool __gnu_cxx::__ops::_Iter_comp_iter<bool (*)(int, int)>::operator()<int*, int*>(int*, int*)": "…::_Iter_comp_iter<…>::operator()<…>",
		"void a::(anonymous namespace)::b::c_of_17_letters_a::d_of_17_letters_a(int)":                    "…::c_of_17_letters_a::d_of_17_letters_a",
		"ns::a_function_with_a_name_of_more_than_forty_bytes()":                                          "…::a_function_with_a_name_of_more_than…",
		"f(int)::{lambda(std::vector<int>, std::vector<int>)#1}::operator()(int) const":                  "…::operator()",
	} {
		if got := briefName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}

func TestShortNames(t *testing.T) {
	for name, want := range map[string]string{
		"main": "main",
		"std::vector<int, std::allocator<int>>::at(unsigned long)": "std::vector<…>::at(unsigned long)",
		"void f<a<b>, c>(d<e> const&)":                             "void f<…>(d<…> const&)",
		"std::map<int, std::function<int (int)> >::find":           "std::map<…>::find",
		"bool operator< <int>(A<int>, B)":                          "bool operator< <…>(A<…>, B)",
		"std::operator<< <char>(std::ostream<char>&)":              "std::operator<< <…>(std::ostream<…>&)",
		"X<a>::operator()<b, c>(b) const":                          "X<…>::operator()<…>(b) const",
		"bool std::operator==<a, b<c>>(d<a>)":                      "bool std::operator==<…>(d<…>)",
		"X<a>::operator d<b>() const":                              "X<…>::operator d<…>() const",
		"X<a>::operator->() const":                                 "X<…>::operator->() const",
		"X<a>::operator<=>(X<a>)":                                  "X<…>::operator<=>(X<…>)",
		"<a::B<u8> as c::D<u8>>::e":                                "<a::B<…> as c::D<…>>::e",
		"core::iter::map<F<fn() -> u8>>::next":                     "core::iter::map<…>::next",
		"f<g":                                                      "f<g",
		"f>g<":                                                     "f>g<",
		"":                                                         "",
		"myoperator<int>":                                          "myoperator<…>",
	} {
		if got := ShortName(name); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
}
