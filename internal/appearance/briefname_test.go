package appearance

import "testing"

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
